"""RestartingSearch: when a search restarts, and when it comes back."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from mondrian_bo.optimizer.search.restarts import RestartingSearch
from mondrian_bo.optimizer.search.search import Search

N_STARTUP = 3


def search_of(restarts=True, continuous=(True, True)):
    return RestartingSearch(
        SimpleNamespace(new=lambda trials, number: SimpleNamespace(trials=trials)),
        np.array(continuous),
        N_STARTUP,
        restarts,
    )


def tell(search, row, value):
    search.tell(np.array(row)[None], np.array([value]))


def spread_out(search, n=8, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        tell(search, rng.uniform(0.5, 1.0, 2), float(rng.normal()) - 10.0)
    tell(search, np.array([0.1, 0.1]), 0.0)


def polish(search, n, gain=0.0):
    """Tell trials near the incumbent, each better than all before by `gain`."""
    for k in range(n):
        tell(search, np.array([0.1 + 0.001 * k, 0.1]), gain * (k + 1))


def is_restarted(search):
    return search.current is not search.whole


def test_a_search_that_polishes_in_vain_restarts():
    search = search_of()
    spread_out(search)
    polish(search, 2)
    assert not is_restarted(search)
    polish(search, 1)
    assert is_restarted(search)
    assert len(search.current.trials) == 0 and len(search.trials) == 12


def test_gains_keep_it_going_unless_they_are_tiny():
    search = search_of()
    spread_out(search)
    polish(search, 20, gain=0.1)
    assert not is_restarted(search)
    search = search_of()
    spread_out(search)
    polish(search, 3, gain=1e-6)
    assert is_restarted(search)


@pytest.mark.parametrize("continuous", [(True, True), (True, False)])
def test_small_gains_of_a_wide_range_keep_a_search_of_continuous_columns_going(continuous):
    """The best quarter of the values ranges over some 10, and the interquartile range is 2,000.

    Where a column has a grid, only a gain of a thousandth of the latter counts, which is 2.
    """
    search = search_of(continuous=continuous)
    rng = np.random.default_rng(0)
    for k in range(24):
        # Bad values from -3,000 to -1,000, and a few good ones.
        tell(search, rng.uniform(0.5, 1.0, 2), -1000.0 - 100.0 * k if k < 18 else -10.0 + k / 10)
    tell(search, np.array([0.1, 0.1]), 0.0)
    polish(search, 3, gain=0.5)
    assert is_restarted(search) == (not all(continuous))


def test_trials_elsewhere_take_pressure_off():
    search = search_of()
    spread_out(search)
    rng = np.random.default_rng(1)
    for _ in range(20):
        polish(search, 1)
        tell(search, rng.uniform(0.5, 1.0, 2), -10.0)
        tell(search, rng.uniform(0.5, 1.0, 2), -10.0)
    assert not is_restarted(search)


@pytest.mark.parametrize(("power", "collapses"), [(1.0, False), (2.0, True)])
def test_a_cusp_is_polished_on_and_a_smooth_basin_left(power, collapses):
    search = search_of()
    spread_out(search)
    rng = np.random.default_rng(2)
    for _ in range(3):
        gap = rng.uniform(0.01, 0.02, 2)
        tell(search, 0.1 + gap, -float(np.linalg.norm(gap) ** power))
    assert is_restarted(search) == collapses


@pytest.mark.parametrize(("continuous", "collapses"), [(True, False), (False, True)])
def test_what_cannot_be_refined_is_left_though_values_differ(continuous, collapses):
    search = search_of(continuous=(continuous, True))
    spread_out(search)
    for k in range(3):
        tell(search, np.array([0.105 + 0.005 * k, 0.1]), -1.0)
    assert is_restarted(search) == collapses


def test_another_category_or_another_parameter_is_not_near():
    for row in ([1.0, 0.1], [0.0, np.nan]):
        search = search_of(continuous=(False, True))
        tell(search, np.array([0.0, 0.1]), 0.0)
        for _ in range(20):
            tell(search, np.array(row), 0.0)
        assert not is_restarted(search)
    search = search_of(continuous=(False, True))
    tell(search, np.array([0.0, np.nan]), 0.0)
    for _ in range(3):
        tell(search, np.array([0.0, np.nan]), 0.0)
    assert is_restarted(search)


def restarted():
    search = search_of()
    spread_out(search)
    polish(search, 3)
    return search


def test_a_restarted_search_ends_where_it_finds_the_incumbent_again():
    search = restarted()
    for k in range(N_STARTUP):
        # First trials do not count.
        tell(search, np.array([0.1, 0.101 + 0.001 * k]), -1.0)
        assert is_restarted(search)
    assert len(search.current.trials) == N_STARTUP
    tell(search, np.array([0.105, 0.1]), -1.0)
    assert not is_restarted(search)
    assert len(search.trials) == 12 + N_STARTUP + 1


def test_a_restarted_search_ends_without_gains_of_its_own():
    search = restarted()
    for k in range(N_STARTUP + 20):
        # It gets better all the time, though never as good as what is known.
        tell(search, np.array([0.9, 0.9]), -100.0 + k)
        assert is_restarted(search)
    assert n_until_the_end(search) == 12


def n_until_the_end(search, value=-1000.0):
    """Tell a restarted search trials that gain nothing until it ends, and return their number."""
    for n in range(1, 300):
        tell(search, np.array([0.8, 0.3 + 0.03 * (n % 20)]), value)
        if not is_restarted(search):
            return n
    raise AssertionError("no end")


def n_until_a_restart(search):
    """Polish the incumbent in vain until the search restarts, and return the number of trials."""
    row, value, _ = search.trials.best()
    for n in range(1, 100):
        tell(search, row + 0.0001 * n, value)
        if is_restarted(search):
            return n
    raise AssertionError("no restart")


def test_restarts_in_vain_become_rarer():
    search = restarted()
    # The first trial of a restarted search has no incumbent to improve on. Each trial in vain of
    # the search over all trials adds 2 to its pressure.
    for n_polished in (6, 12, 24):
        assert n_until_the_end(search) == 13
        assert n_until_a_restart(search) == n_polished


def test_after_a_restart_with_a_gain_the_next_is_like_the_first():
    search = restarted()
    n_until_the_end(search)
    n_until_a_restart(search)
    tell(search, np.array([0.8, 0.9]), 50.0)
    n_until_the_end(search)
    assert n_until_a_restart(search) == 3


def search_after(n_elsewhere):
    """Return a search whose latest trials are elsewhere and do not gain."""
    search = search_of()
    spread_out(search)
    for k in range(n_elsewhere):
        tell(search, np.array([0.8, 0.3 + 0.03 * (k % 20)]), -10.0 - 0.01 * k)
    return search


def test_restarts_of_a_stalled_search_become_longer():
    search = search_after(97)
    n_until_a_restart(search)
    for n_restarted in (25, 49, 97):
        assert n_until_the_end(search) == n_restarted
        assert n_until_a_restart(search) == 3
    tell(search, np.array([0.8, 0.9]), 50.0)
    n_until_the_end(search)
    assert n_until_a_restart(search) == 3
    assert n_until_the_end(search) == 13


def test_after_a_gain_restarts_of_a_stalled_search_are_as_short_as_at_first():
    search = search_after(97)
    for n_restarted in (25, 49):
        n_until_a_restart(search)
        assert n_until_the_end(search) == n_restarted
    n_until_a_restart(search)
    tell(search, (0.8, 0.9), 50.0)
    n_until_the_end(search)
    for k in range(100):
        tell(search, (0.3, 0.3 + 0.03 * (k % 20)), -10.0)
    n_until_a_restart(search)
    assert n_until_the_end(search) == 25


@pytest.mark.parametrize(("n_elsewhere", "restarts"), [(40, False), (100, True)])
def test_trials_elsewhere_take_no_pressure_off_a_stalled_search(n_elsewhere, restarts):
    search = search_after(n_elsewhere)
    rng = np.random.default_rng(1)
    for _ in range(3):
        assert not is_restarted(search)
        polish(search, 1)
        if not is_restarted(search):
            for _ in range(5):
                tell(search, rng.uniform(0.5, 1.0, 2), -20.0)
    assert is_restarted(search) == restarts


@pytest.mark.parametrize(("n_elsewhere", "gain"), [(96, 0.0), (200, 1e-9)])
def test_any_gain_keeps_a_search_from_stalling(n_elsewhere, gain):
    search = search_after(n_elsewhere)
    if gain > 0.0:
        tell(search, np.array([0.1, 0.1]), gain)
    n_until_a_restart(search)
    assert n_until_the_end(search) == 13


def test_a_restarted_search_ends_where_it_collapses_itself():
    search = restarted()
    for k in range(N_STARTUP):
        tell(search, np.array([0.9, 0.9 - 0.1 * k]), -10.0 + k)
    for k in range(3):
        assert is_restarted(search)
        tell(search, np.array([0.9, 0.701 + 0.001 * k]), -10.0 + N_STARTUP - 1)
    assert not is_restarted(search)


def test_an_infeasible_trial_is_no_gain():
    """Each of three trials in vain adds 2 to the pressure, and one that is not subtracts 1."""
    for feasible, n_more in ((False, 2), (True, 3)):
        search = search_of()
        spread_out(search)
        polish(search, 2)
        search.tell(np.array([[0.101, 0.1]]), np.array([100.0]), np.array([feasible]))
        assert n_until_a_restart(search) == n_more


def test_the_incumbent_of_a_restarted_search_is_feasible():
    """It gets better all the time, but for one infeasible trial."""
    search = restarted()
    search.tell(np.array([[0.9, 0.9]]), np.array([50.0]), np.array([False]))
    for k in range(N_STARTUP + 20):
        tell(search, (0.9, 0.9), -100.0 + k)
        assert is_restarted(search)


def random_trials(rng, n):
    """Return trials near two incumbents and elsewhere, some of which fail or are infeasible."""
    rows = np.array([[0.1, 0.1], [0.8, 0.7]])[(rng.random(n) < 0.3).astype(int)]
    rows = rows + np.where(rng.random((n, 1)) < 0.9, 0.01, 0.3) * rng.random((n, 2))
    values = rng.choice([0.0, -0.1, -0.3, np.nan], size=n, p=[0.6, 0.1, 0.1, 0.2])
    return rows, values, rng.random(n) < 0.9


def test_what_was_told_after_a_state_has_no_effect_once_it_is_restored():
    before, after = set(), set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        first, undone, then = (random_trials(rng, n) for n in (10 + 4 * seed, 40, 40))
        plain, search = search_of(), search_of()
        for one in (plain, search):
            one.tell(*first)
        before.add(is_restarted(search))
        state = search.state()
        for _ in range(2):
            search.tell(*undone)
            search.restore(state)
        for row, value, feasible in zip(*then, strict=True):
            for one in (plain, search):
                one.tell(row[None], np.array([value]), np.array([feasible]))
            after.add(is_restarted(search))
            assert is_restarted(search) == is_restarted(plain)
            np.testing.assert_array_equal(search.current.trials.rows, plain.current.trials.rows)
        np.testing.assert_array_equal(search.trials.values, plain.trials.values)
        np.testing.assert_array_equal(search.failed.rows.rows, plain.failed.rows.rows)
        assert search.failed.learnt == plain.failed.learnt
        told = np.concatenate([first[1], then[1]])
        assert search.n_successes == np.count_nonzero(~np.isnan(told))
    assert before == after == {False, True}


@pytest.mark.parametrize("values", [[np.inf] * 20, [-np.inf] * 20, [0.0] * 20])
def test_values_of_any_kind(values):
    search, n_restarted = search_of(), 0
    for k, value in enumerate(values):
        tell(search, np.array([0.5, 0.5 + 1e-4 * k]), value)
        n_restarted += is_restarted(search)
    assert len(search.trials) == 20
    # All are equal, infinities as well.
    assert n_restarted > 0


class Model:
    """A model that counts how often it is to forget its trials."""

    def __init__(self, number):
        self.models, self.number, self.n_forgotten = (number,), number, 0

    def forget(self):
        self.n_forgotten += 1


def test_models_are_those_of_the_present_searches():
    made = []

    def new(trials, number):
        made.append(Model(number))
        rugged = Model(-number)
        made.append(rugged)
        arms = [(made[-2], None)]
        return Search(trials, arms, 0, 1, np.zeros(2), new_rugged=lambda: (rugged, None))

    search = RestartingSearch(SimpleNamespace(new=new), np.array([True, True]), N_STARTUP, True)
    spread_out(search)
    assert search.models == [0]
    polish(search, 3)
    assert search.models == [0, 1]
    search.forget()
    # Rugged models that no suggestion needed have nothing to forget.
    assert [model.n_forgotten for model in made] == [1, 0, 1, 0]
    assert [one.rugged for one in search.searches] == [(made[1], None), (made[3], None)]
    search.forget()
    assert [model.n_forgotten for model in made] == [2, 1, 2, 1]
    n_until_the_end(search)
    assert search.models == [0] and search.searches == [search.whole]


def test_without_restarts_there_is_one_search():
    search = search_of(restarts=False)
    spread_out(search)
    polish(search, 50)
    assert not is_restarted(search)


@pytest.mark.filterwarnings("error")
def test_the_largest_values():
    search = search_of()
    for k in range(20):
        tell(search, np.array([0.05 * k, 0.5]), (1.7e308 - 1e306 * k) * (-1) ** k)
    assert 0.0 < search._least_gain() < np.inf


@pytest.mark.parametrize("value", [5.0, -20.0])
@pytest.mark.parametrize(("n_more", "n_restarted"), [(96, 13), (97, 25)])
def test_the_first_feasible_trial_is_a_gain_whatever_its_value(value, n_more, n_restarted):
    """A search has stalled after 100 trials without a gain, and its restarts are longer then.

    The last three of them are those near the incumbent that start the restart.
    """
    search, rng = search_of(), np.random.default_rng(0)
    search.tell(rng.random((110, 2)), -10.0 - rng.random(110), np.zeros(110, dtype=bool))
    search.tell(np.array([[0.5, 0.5]]), np.array([value]), np.array([True]))
    for k in range(n_more):
        tell(search, (0.8, 0.3 + 0.03 * (k % 20)), value - 1.0)
    assert n_until_a_restart(search) == 3
    assert n_until_the_end(search) == n_restarted

"""RestartingSearch: when a search starts afresh, and when it comes back."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from mondrian_bo.optimizer.restarts import RestartingSearch

N_STARTUP = 3


def epochs_of(restarts=True, categorical=(False, False), continuous=(True, True)):
    return RestartingSearch(
        lambda trials: SimpleNamespace(trials=trials),
        np.array(categorical),
        np.array(continuous),
        N_STARTUP,
        restarts,
    )


def spread_out(epochs, n=8, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        epochs.tell(rng.uniform(0.5, 1.0, 2), float(rng.normal()) - 10.0)
    epochs.tell(np.array([0.1, 0.1]), 0.0)


def polish(epochs, n, gain=0.0):
    """Tell trials near the incumbent, each better than all before by `gain`."""
    for k in range(n):
        epochs.tell(np.array([0.1 + 0.001 * k, 0.1]), gain * (k + 1))


def is_fresh(epochs):
    return epochs.current is not epochs.whole


def test_a_search_that_polishes_in_vain_starts_afresh():
    epochs = epochs_of()
    spread_out(epochs)
    polish(epochs, 2)
    assert not is_fresh(epochs)
    polish(epochs, 1)
    assert is_fresh(epochs)
    assert len(epochs.current.trials) == 0 and len(epochs.trials) == 12


def test_gains_keep_it_going_unless_they_are_tiny():
    epochs = epochs_of()
    spread_out(epochs)
    polish(epochs, 20, gain=0.1)
    assert not is_fresh(epochs)
    epochs = epochs_of()
    spread_out(epochs)
    polish(epochs, 3, gain=1e-6)
    assert is_fresh(epochs)


def test_trials_elsewhere_take_pressure_off():
    epochs = epochs_of()
    spread_out(epochs)
    rng = np.random.default_rng(1)
    for _ in range(20):
        polish(epochs, 1)
        epochs.tell(rng.uniform(0.5, 1.0, 2), -10.0)
        epochs.tell(rng.uniform(0.5, 1.0, 2), -10.0)
    assert not is_fresh(epochs)


@pytest.mark.parametrize(("power", "collapses"), [(1.0, False), (2.0, True)])
def test_a_cusp_is_polished_on_and_a_smooth_basin_left(power, collapses):
    epochs = epochs_of()
    spread_out(epochs)
    rng = np.random.default_rng(2)
    for _ in range(3):
        gap = rng.uniform(0.01, 0.02, 2)
        epochs.tell(0.1 + gap, -float(np.linalg.norm(gap) ** power))
    assert is_fresh(epochs) == collapses


@pytest.mark.parametrize(("continuous", "collapses"), [(True, False), (False, True)])
def test_what_cannot_be_refined_is_left_though_values_differ(continuous, collapses):
    epochs = epochs_of(continuous=(continuous, True))
    spread_out(epochs)
    for k in range(3):
        epochs.tell(np.array([0.105 + 0.005 * k, 0.1]), -1.0)
    assert is_fresh(epochs) == collapses


def test_another_category_or_another_parameter_is_not_near():
    for row in ([1.0, 0.1], [0.0, np.nan]):
        epochs = epochs_of(categorical=(True, False))
        epochs.tell(np.array([0.0, 0.1]), 0.0)
        for _ in range(20):
            epochs.tell(np.array(row), 0.0)
        assert not is_fresh(epochs)
    epochs = epochs_of(categorical=(True, False))
    epochs.tell(np.array([0.0, np.nan]), 0.0)
    for _ in range(3):
        epochs.tell(np.array([0.0, np.nan]), 0.0)
    assert is_fresh(epochs)


def fresh():
    epochs = epochs_of()
    spread_out(epochs)
    polish(epochs, 3)
    return epochs


def test_a_fresh_epoch_ends_where_it_finds_the_incumbent_again():
    epochs = fresh()
    for k in range(N_STARTUP):
        # First trials do not count.
        epochs.tell(np.array([0.1, 0.101 + 0.001 * k]), -1.0)
        assert is_fresh(epochs)
    assert len(epochs.current.trials) == N_STARTUP
    epochs.tell(np.array([0.105, 0.1]), -1.0)
    assert not is_fresh(epochs)
    assert len(epochs.trials) == 12 + N_STARTUP + 1


def test_a_fresh_epoch_ends_without_gains_of_its_own():
    epochs = fresh()
    for k in range(N_STARTUP + 20):
        # It gets better all the time, though never as good as what is known.
        epochs.tell(np.array([0.9, 0.9]), -100.0 + k)
        assert is_fresh(epochs)
    n = 0
    while is_fresh(epochs):
        epochs.tell(np.array([0.8, 0.9]), -1000.0)
        n += 1
    assert n == 12


def test_after_an_epoch_in_vain_the_next_takes_longer():
    epochs = fresh()
    for gain, n_polished in ((-1000.0, 6), (50.0, 3)):
        while is_fresh(epochs):
            epochs.tell(np.array([0.8, 0.9]), gain)
        row, value = epochs.trials.best()
        for k in range(n_polished):
            assert not is_fresh(epochs)
            epochs.tell(row + 0.001 * (k + 1), value)
        assert is_fresh(epochs)


@pytest.mark.parametrize("values", [[np.inf] * 20, [-np.inf] * 20, [0.0] * 20])
def test_values_of_any_kind(values):
    epochs, n_fresh = epochs_of(), 0
    for k, value in enumerate(values):
        epochs.tell(np.array([0.5, 0.5 + 1e-4 * k]), value)
        n_fresh += is_fresh(epochs)
    assert len(epochs.trials) == 20
    # All are equal, infinities as well.
    assert n_fresh > 0


def test_without_restarts_there_is_one_search():
    epochs = epochs_of(restarts=False)
    spread_out(epochs)
    polish(epochs, 50)
    assert not is_fresh(epochs)


@pytest.mark.filterwarnings("error")
def test_the_largest_values():
    epochs = epochs_of()
    for k in range(20):
        epochs.tell(np.array([0.05 * k, 0.5]), 1.7e308 * (-1) ** k)
    assert 0.0 < epochs._least_gain() < np.inf


def test_failures_are_learnt_where_the_nearest_failed_too():
    epochs = epochs_of()
    for k in range(5):
        epochs.tell(np.array([0.1 * k, 0.1]), float(k))
    # Two that may be accidents, one far from them, and one among them.
    for row, n_trials in [((0.8, 0.8), 5), ((0.8, 0.9), 5), ((0.1, 0.2), 5), ((0.9, 0.9), 6)]:
        epochs.fail(np.array(row))
        assert epochs.trials.is_known(np.array(row))
        assert len(epochs.trials) == n_trials
    assert epochs.learnt_failures == [5]
    assert epochs.trials.values[5] == 2.0
    assert [0.9, 0.9] not in epochs.trials.feasible_incumbents().tolist()
    # What was learnt is no neighbour that speaks for the next.
    epochs.fail(np.array([0.9, 0.91]))
    assert epochs.learnt_failures == [5, 6]


def test_failures_before_any_value():
    epochs = epochs_of()
    for k in range(5):
        epochs.fail(np.array([0.1 * k, 0.1]))
    assert len(epochs.trials) == 0


def test_choices_are_neighbours_if_they_are_equal():
    epochs = epochs_of(categorical=(True, False), continuous=(False, True))
    epochs.tell(np.array([1.0, 0.5]), 1.0)
    for x in (0.0, 1.0):
        epochs.fail(np.array([2.0, x]))
    epochs.fail(np.array([2.0, 0.5]))
    assert epochs.learnt_failures == [1]
    # The same number under another choice is as far as any other choice.
    epochs.fail(np.array([5.0, 0.5]))
    assert epochs.learnt_failures == [1]

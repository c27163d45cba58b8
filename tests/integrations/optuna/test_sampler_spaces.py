"""Spaces as objectives define them: kinds, conditions, ranges that change, odd choices."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from optuna.samplers import RandomSampler
from optuna.trial import TrialState
from studies import conditional, is_consistent, make_study, optimize, parameters, states

from mondrian_bo import MondrianSampler
from mondrian_bo.integrations.optuna.study.proposals import PUBLISHED_KEY
from mondrian_bo.optimizer.row_optimizer import RowOptimizer


@pytest.fixture
def spied(monkeypatch):
    """What was proposed for whole trials, and the names asked for one by one, by trial number."""
    proposals, singles = {}, {}
    relative, independent = MondrianSampler.sample_relative, MondrianSampler.sample_independent

    def sample_relative(self, study, trial, search_space):
        proposals[trial.number] = relative(self, study, trial, search_space)
        return proposals[trial.number]

    def sample_independent(self, study, trial, name, distribution):
        singles.setdefault(trial.number, []).append(name)
        return independent(self, study, trial, name, distribution)

    monkeypatch.setattr(MondrianSampler, "sample_relative", sample_relative)
    monkeypatch.setattr(MondrianSampler, "sample_independent", sample_independent)
    return proposals, singles


def single_numbers(spied, start):
    """Numbers of the trials from `start` on in which anything was drawn independently."""
    return [number for number in spied[1] if number >= start]


def everything(trial):
    value = trial.suggest_float("float", -1.0, 1.0) ** 2
    value += trial.suggest_float("log", 1e-4, 1.0, log=True)
    value += trial.suggest_float("step", 0.0, 0.9, step=0.15)
    value += abs(trial.suggest_int("int", -5, 5))
    value += trial.suggest_int("int_step", 0, 40, step=8) / 40
    value += trial.suggest_int("int_log", 1, 1024, log=True) / 1024
    value += trial.suggest_categorical("choice", ["a", None, 2.5, True]) is None
    return value + trial.suggest_float("point", 3.0, 3.0)


def test_every_kind_of_parameter(spied):
    study = optimize(make_study(), everything, 25)
    assert states(study) == {TrialState.COMPLETE: 25}
    assert single_numbers(spied, 1) == []
    for trial in study.trials:
        for name, value in trial.params.items():
            assert trial.distributions[name]._contains(
                trial.distributions[name].to_internal_repr(value)
            )
    # What the model proposes is of the builtin types, as JSON has them.
    types = {"float": float, "log": float, "step": float} | dict.fromkeys(
        ("int", "int_step", "int_log"), int
    )
    assert len(spied[0]) == 25
    for number, proposal in spied[0].items():
        if number:
            assert set(proposal) == {*types, "choice"}
        assert all(type(proposal[name]) is types[name] for name in types if name in proposal)
        if "choice" in proposal:
            assert any(proposal["choice"] is choice for choice in ("a", None, 2.5, True))
    published = json.loads(study.trials[-1].system_attrs[f"{PUBLISHED_KEY}:0"])
    assert {type(value) for value in published.values()} <= {int, float}


def test_single_valued_parameters_only(spied):
    def objective(trial):
        trial.suggest_categorical("c", ["a"])
        return trial.suggest_float("x", 1.0, 1.0) + trial.suggest_int("n", 2, 2)

    study = optimize(make_study(), objective, 6)
    assert parameters(study) == [{"c": "a", "x": 1.0, "n": 2}] * 6
    assert not any(spied[0].values())


def test_no_parameters():
    study = optimize(make_study(), lambda trial: 1.0, 6)
    assert parameters(study) == [{}] * 6


# Conditions ---------------------------------------------------------------------------------------


def test_proposals_keep_to_the_conditions(spied):
    proposals, _ = spied
    best = []
    for seed in range(3):
        # Every branch has been seen in these.
        study = optimize(make_study(RandomSampler(seed=0)), conditional, 40)
        study.sampler = MondrianSampler(seed=seed)
        proposals.clear()
        optimize(study, conditional, 20)
        # All is proposed at once, and nothing in vain.
        assert single_numbers(spied, 0) == []
        for number in range(40, 60):
            assert is_consistent(proposals[number])
            assert study.trials[number].params == proposals[number]
        best.append(study.best_value)
    assert np.median(best) < 0.7


def test_conditions_learnt_on_the_way():
    best = []
    for seed in range(3):
        study = optimize(make_study(MondrianSampler(seed=seed)), conditional, 40)
        assert all(is_consistent(params) for params in parameters(study))
        best.append(study.best_value)
    # The innermost branch holds the optimum, 0.5; the best of the others is 0.9.
    assert np.median(best) < 0.85


def test_number_of_layers(spied):
    """The commonest condition of all: a list of parameters as long as an integer says."""

    def objective(trial):
        n_layers = trial.suggest_int("n_layers", 1, 4)
        units = [trial.suggest_int(f"units {i}", 1, 128, log=True) for i in range(n_layers)]
        return abs(n_layers - 3) + sum(abs(math.log2(unit) - 4.0) for unit in units) / n_layers

    study = optimize(make_study(RandomSampler(seed=0)), objective, 25)
    study.sampler = MondrianSampler(seed=0)
    optimize(study, objective, 20)
    assert single_numbers(spied, 25) == []
    for number in range(25, 45):
        n_layers = spied[0][number]["n_layers"]
        assert set(spied[0][number]) == {"n_layers", *(f"units {i}" for i in range(n_layers))}


def test_unexplained_conditions():
    """Whether `y` is asked for depends on a float, which no condition can say."""

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        if x < 0.5:
            return 1.0 + x
        return x - 0.5 + abs(trial.suggest_float("y", 0.0, 1.0) - 0.25)

    shares = []
    for seed in range(3):
        study = optimize(make_study(MondrianSampler(seed=seed)), objective, 40)
        assert states(study) == {TrialState.COMPLETE: 40}
        shares.append(np.mean(["y" in params for params in parameters(study)[20:]]))
    # The better half is known to be better.
    assert np.median(shares) > 0.7


def test_unexplained_conditions_of_discrete_parameters_are_explored():
    """Proposals hold parameters that trials then lack: the same trial must not recur for ever."""

    def objective(trial):
        n = trial.suggest_int("n", 0, 30)
        if n % 2:
            return 1.0 + n / 30
        return n / 30 + 0.1 * (trial.suggest_categorical("c", ["a", "b"]) == "a")

    study = optimize(make_study(), objective, 30)
    # Of the 47 different trials none is run twice, once a second parameter is known.
    ran = [tuple(params.values()) for params in parameters(study)]
    later = ran[[len(values) for values in ran].index(2) :]
    assert len(set(later)) == len(later) >= 20
    assert study.best_value < 0.2


def test_new_parameters_in_the_middle_of_a_study(spied):
    def objective(trial):
        value = trial.suggest_float("x", -1.0, 1.0) ** 2
        if trial.number >= 10:
            value += trial.suggest_float("y", -1.0, 1.0) ** 2
        if trial.number >= 20:
            value += trial.suggest_categorical("c", [True, False])
        return value

    study = optimize(make_study(), objective, 35)
    # Independently only where nothing is known of a parameter.
    assert spied[1] == {0: ["x"], 10: ["y"], 20: ["c"]}
    assert study.best_value < 0.1


def test_new_parameters_of_trials_that_are_known():
    """Trials from before the new parameter are no reason not to try their values with it."""

    def objective(trial):
        n = trial.suggest_int("n", 0, 20)
        c = trial.suggest_categorical("c", list("abcde")) if trial.number >= 22 else "a"
        return (n - 7) ** 2 + 5 * (c != "d")

    study = optimize(make_study(), objective, 42)
    assert study.best_params == {"n": 7, "c": "d"}
    assert len({tuple(params.values()) for params in parameters(study)[22:]}) == 20


def test_trials_from_before_a_new_number_do_not_mislead():
    """They had y = 0.1, the best value, and not the middle of the range."""

    def objective(trial):
        value = trial.suggest_float("x", 0.0, 1.0)
        y = trial.suggest_float("y", 0.0, 1.0) if trial.number >= 20 else 0.1
        return value + 3.0 * (y - 0.1) ** 2

    study = optimize(make_study(RandomSampler(seed=0)), objective, 40)
    points = [{"x": 0.2, "y": y} for y in (0.0, 0.1, 0.3, 0.5, 0.8)]
    found = MondrianSampler(seed=0).predict(study, points)
    expected = [0.2 + 3.0 * (point["y"] - 0.1) ** 2 for point in points]
    np.testing.assert_allclose(found.mean, expected, atol=0.05)
    study.sampler = MondrianSampler(seed=0)
    optimize(study, objective, 10)
    assert abs(study.best_params["y"] - 0.1) < 0.05
    assert study.best_value < 0.01


def test_parameters_that_disappear():
    def objective(trial):
        value = trial.suggest_float("x", -1.0, 1.0) ** 2
        if trial.number < 10:
            value += trial.suggest_float("y", -1.0, 1.0) ** 2
        return value

    study = optimize(make_study(), objective, 30)
    assert states(study) == {TrialState.COMPLETE: 30}
    assert study.best_value < 0.01


# Ranges -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "best"),
    [
        ((0.0, 10.0), (4.0, 6.0), 4.5),
        ((4.0, 6.0), (0.0, 10.0), 8.0),
        ((0.0, 1.0), (10.0, 11.0), 10.5),
        ((1.0, 1.0), (0.0, 3.0), 2.0),
    ],
    ids=["narrower", "wider", "elsewhere", "from a point"],
)
def test_a_range_that_changes(spied, first, second, best):
    def objective(trial):
        return abs(trial.suggest_float("x", *(first if trial.number < 12 else second)) - best)

    medians = []
    for seed in range(3):
        spied[1].clear()
        sampler = MondrianSampler(seed=seed, n_startup_trials=3)
        study = optimize(make_study(sampler), objective, 35)
        # One trial at most draws the parameter alone: the first to show the new range.
        assert all(number <= 12 for number in spied[1])
        later = [params["x"] for params in parameters(study)[12:]]
        assert all(second[0] <= x <= second[1] for x in later)
        medians.append(np.median([abs(x - best) for x in later]))
    # Uniform trials would be this far away, in the median.
    uniform = np.median(np.abs(np.linspace(*second, 1001) - best))
    assert np.median(medians) < 0.8 * uniform


def test_integers_steps_and_logs_that_change():
    def objective(trial):
        late = trial.number >= 8
        n = trial.suggest_int("n", 0, 20, step=5) if late else trial.suggest_int("n", -3, 9)
        rate = trial.suggest_float("rate", 1e-1 if late else 1e-6, 1.0, log=True)
        grid = trial.suggest_float("grid", 0.0, 1.0, step=0.25 if late else 0.1)
        return n + rate + grid

    study = optimize(make_study(), objective, 20)
    assert states(study) == {TrialState.COMPLETE: 20}
    for params in parameters(study)[8:]:
        assert params["n"] in range(0, 21, 5)
        assert params["rate"] >= 0.1
        assert params["grid"] in (0.0, 0.25, 0.5, 0.75, 1.0)


def test_another_scale_is_refused_by_optuna_and_survived():
    study = make_study()
    optimize(study, lambda trial: trial.suggest_float("x", 0.1, 1.0), 5)
    with pytest.raises(ValueError, match="different log configuration"):
        optimize(study, lambda trial: trial.suggest_float("x", 0.1, 1.0, log=True), 1)
    optimize(study, lambda trial: trial.suggest_float("x", 0.1, 1.0), 5)
    assert states(study) == {TrialState.COMPLETE: 10, TrialState.FAIL: 1}


def test_dynamic_ranges():
    """The range of `y` depends on `x`, and is a new one in every trial."""

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        y = trial.suggest_float("y", 0.0, x) if x > 0.0 else 0.0
        return abs(x - 0.8) + abs(y - 0.3)

    study = optimize(make_study(), objective, 40)
    assert states(study) == {TrialState.COMPLETE: 40}
    assert all(params.get("y", 0.0) <= params["x"] for params in parameters(study))
    assert study.best_value < 0.25


def test_extreme_bounds():
    def objective(trial):
        value = trial.suggest_int("n", -(2**62), 2**62) / 2**62
        value += math.log10(trial.suggest_float("tiny", 1e-300, 1e300, log=True)) / 300
        return value + trial.suggest_float("big", -1e300, 1e300) / 1e300

    study = optimize(make_study(), objective, 20)
    assert states(study) == {TrialState.COMPLETE: 20}
    assert study.best_value < -1.0


# Choices ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "choices",
    [
        [1, True, "1", "a"],
        [None, 0, False, ""],
        ["a", "a", "b"],
        [math.nan, 1.0, -1.0],
        [1, 1.0],
        [True],
        list(range(300)),
    ],
    ids=["like one", "like nothing", "twice", "nan", "all equal", "single", "many"],
)
def test_odd_choices(choices):
    seen = []

    def objective(trial):
        seen.append(trial.suggest_categorical("c", choices))
        return float(seen[-1] == "b") if "b" in choices else 0.0

    study = optimize(make_study(), objective, 15)
    assert states(study) == {TrialState.COMPLETE: 15}
    assert all(any(value is choice for choice in choices) for value in seen)
    # Those that Optuna can tell apart are all tried before any comes again.
    distinct = len({study.trials[0].distributions["c"].to_internal_repr(c) for c in choices})
    tried = [trial.distributions["c"].to_internal_repr(trial.params["c"]) for trial in study.trials]
    assert len(set(tried[:distinct])) == min(distinct, 15)


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
def test_choices_that_are_objects():
    choices = [("relu", 1), ("tanh", 2), {"unhashable": []}]

    def objective(trial):
        return float(trial.suggest_categorical("c", choices) == ("tanh", 2))

    study = optimize(make_study(direction="maximize"), objective, 8)
    assert study.best_params == {"c": ("tanh", 2)}


def test_an_enqueued_value_outside_of_its_distribution():
    """Optuna stores it with a warning."""
    study = make_study()
    study.enqueue_trial({"n": 0.5, "x": 0.25})

    def objective(trial):
        n, x = trial.suggest_int("n", 1, 30, log=True), trial.suggest_float("x", 0.0, 1.0)
        return n + x

    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(objective, n_trials=1)
    optimize(study, objective, 19)
    assert states(study) == {TrialState.COMPLETE: 20}
    assert study.best_trial.params["x"] < 0.3


def test_failed_values_are_not_drawn_again():
    def failing(trial):
        trial.suggest_categorical("kind", list("abcdefgh"))
        return math.nan

    for seed in range(3):
        study = optimize(make_study(MondrianSampler(seed=seed)), failing, 16)
        kinds = [params["kind"] for params in parameters(study)]
        assert sorted(kinds[:8]) == list("abcdefgh") == sorted(kinds[8:])


def test_finite_space_is_exhausted_before_it_repeats():
    def objective(trial):
        a, b = trial.suggest_int("a", 0, 3), trial.suggest_float("b", 0.0, 1.0, step=0.5)
        return a + b + (trial.suggest_categorical("c", ["u", "v"]) == "u")

    study = make_study(MondrianSampler(seed=3))
    optimize(study, objective, 30)
    assert len({tuple(params.values()) for params in parameters(study)[:24]}) == 24


def test_a_wide_space_is_rebuilt_rarely(monkeypatch):
    """Each trial finds a branch of its own. The optimizer is built again O(log n) times."""
    n_built, told, spaces = 0, [], []
    make, tell = RowOptimizer.__init__, RowOptimizer.tell_rows

    def init(self, space, **settings):
        nonlocal n_built
        n_built += 1
        spaces.append(space)
        make(self, space, **settings)

    def tell_rows(self, rows, *others, **more):
        told.append(len(rows))
        tell(self, rows, *others, **more)

    monkeypatch.setattr(RowOptimizer, "__init__", init)
    monkeypatch.setattr(RowOptimizer, "tell_rows", tell_rows)
    study = make_study(MondrianSampler(seed=0, n_startup_trials=1000))
    n_trials = 90

    def objective(trial):
        branch = trial.suggest_categorical("branch", range(1000))
        return trial.suggest_float(f"x{branch}", 0.0, 1.0) + trial.suggest_float(f"y{branch}", 0, 1)

    study.optimize(objective, n_trials=n_trials)
    # At once up to 64 parameters, of about 32 trials; then at growth by a tenth.
    n_small = sum(len(space) < 64 for space in spaces)
    assert n_built - n_small <= math.log(n_trials / n_small) / math.log(1.1) + 2
    assert len(spaces[-1]) > 150
    # Each build tells all trials again: their sum is O(n), not O(n^2), and no trial is left out.
    assert sum(told) < n_small**2 / 2 + 15 * n_trials


def test_a_wide_space_with_an_absence_that_was_never_seen_is_rebuilt_at_once():
    """Without that the trial would have no row."""
    study = make_study(MondrianSampler(seed=0, n_startup_trials=1000))
    names = [f"x{i}" for i in range(80)]

    def objective(trial):
        asked = names[1:] if trial.number == 30 else names
        return sum(trial.suggest_float(name, 0.0, 1.0) for name in asked)

    study.optimize(objective, n_trials=32)
    (memory,) = study.sampler._memory[study._storage].values()
    assert memory.n_told == 31 and memory._optimizer.n_trials == 31


def test_large_integers_are_recorded_as_they_are_evaluated():
    found = []

    def objective(trial):
        found.append(trial.suggest_int("i", 2**53, 2**53 + 10))
        return found[-1] - 2**53

    study = optimize(make_study(MondrianSampler(seed=0)), objective, 20)
    assert [one["i"] for one in parameters(study)] == found

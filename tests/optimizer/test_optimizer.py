"""Ask and tell: accounts of trials, reproducibility, symmetry, what is learnt and what is found."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from searches import run

from mondrian_bo import Categorical, Float, Int, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import ExpectedImprovement, UpperConfidenceBound
from mondrian_bo.search_space import Condition
from mondrian_bo.surrogates.mondrian_forest.surrogate import ForestSurrogate

SQUARE = SearchSpace({"x": Float(-1.0, 1.0), "y": Float(-1.0, 1.0)})
MIXED = SearchSpace(
    {
        "x": Float(-2.0, 2.0),
        "rate": Float(1e-4, 1.0, log=True),
        "n": Int(1, 9),
        "kind": Categorical(("a", "b", None)),
        "depth": Int(1, 64, log=True, condition=Condition("kind", ("b",))),
    }
)


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] + 0.2) ** 2


def mixed(params):
    value = (params["x"] - 0.5) ** 2 + abs(math.log10(params["rate"]) + 2.0)
    value += 0.1 * abs(params["n"] - 3)
    return value + (0.05 * params["depth"] if params["kind"] == "b" else 0.5)


@pytest.mark.parametrize("space", [SQUARE, MIXED], ids=["square", "mixed"])
def test_same_seed_same_run(space):
    objective = bowl if space is SQUARE else mixed
    settings = {"n_startup_trials": 10}
    first = run(MondrianOptimizer(space, seed=3, **settings), objective, 25)
    assert run(MondrianOptimizer(space, seed=3, **settings), objective, 25) == first
    other = run(MondrianOptimizer(space, seed=4, **settings), objective, 25)
    # The first trial is the centre, and corners may be met by both.
    assert not any(params in first for params in other[1:10])
    assert other != first


@pytest.mark.parametrize(
    ("space", "settings", "n_first"),
    [
        (SQUARE, {}, 4),
        (SQUARE, {"n_startup_trials": 6}, 6),
        (MIXED, {}, 10),
        (SQUARE, {"surrogate": "forest"}, 10),
        (SQUARE, {"directions": ["minimize", "minimize"]}, 4),
        (SQUARE, {"fidelity": "y"}, 10),
        (SQUARE, {"warm_start": [([{"x": 0.0, "y": 0.0}], [1.0])]}, 4),
    ],
)
def test_number_of_first_trials(space, settings, n_first):
    optimizer = MondrianOptimizer(space, seed=0, **settings)
    assert optimizer._factory.settings.n_startup_trials == n_first
    if "fidelity" in settings or "warm_start" in settings:
        return
    n_objectives = len(optimizer.directions)

    def objective(params):
        value = (bowl if space is SQUARE else mixed)(params)
        return value if n_objectives == 1 else [value] * n_objectives

    found = run(optimizer, objective, n_first + 2)
    without_model = run(
        MondrianOptimizer(space, seed=0, **settings | {"n_startup_trials": 1000}),
        objective,
        n_first + 2,
    )
    assert found[:n_first] == without_model[:n_first]
    assert found[n_first:] != without_model[n_first:]


def test_seed_none_is_entropy():
    first, second = (MondrianOptimizer(SQUARE, seed=None).ask(2)[1] for _ in range(2))
    assert first != second


def test_sequence_of_integers_as_seed():
    asked = [MondrianOptimizer(SQUARE, seed=seed).ask(12) for seed in ([1, 2], [1, 2], [1, 3])]
    assert asked[0] == asked[1] != asked[2]


@pytest.mark.parametrize("space", [SQUARE, MIXED], ids=["square", "mixed"])
@pytest.mark.parametrize("acquisition", ["auto", "thompson"])
def test_minimising_is_maximising_the_negative(space, acquisition):
    objective = bowl if space is SQUARE else mixed
    settings = {"seed": 0, "acquisition": acquisition}
    down = MondrianOptimizer(space, **settings)
    up = MondrianOptimizer(space, direction="maximize", **settings)
    asked = run(down, objective, 25)
    assert run(up, lambda params: -objective(params), 25) == asked
    assert down.best[0] == up.best[0]
    assert down.best[1] == -up.best[1]
    (mean, std), (negative, same) = down.predict(asked), up.predict(asked)
    assert np.array_equal(mean, -negative)
    assert np.array_equal(std, same)


def test_far_better_than_random():
    found, drawn = [], []
    for seed in range(8):
        optimizer = MondrianOptimizer(SQUARE, seed=seed)
        run(optimizer, bowl, 40)
        found.append(optimizer.best[1])
        points = np.random.default_rng(seed).uniform(-1.0, 1.0, (40, 2))
        drawn.append(min(bowl({"x": x, "y": y}) for x, y in points))
    assert np.median(found) < 0.2 * np.median(drawn)
    assert max(found) < max(drawn)


@pytest.mark.parametrize(
    "acquisition",
    ["auto", "ucb", "ei", "log_ei", "pi", "thompson", UpperConfidenceBound(2.0), "own", "class"],
)
def test_every_acquisition_concentrates(acquisition):
    if acquisition == "own":

        def acquisition(prediction, incumbent):
            return prediction.means.mean(axis=0)

    if acquisition == "class":
        acquisition = ExpectedImprovement(0.01)
    late = []
    for seed in range(4):
        optimizer = MondrianOptimizer(SQUARE, seed=seed, acquisition=acquisition)
        late += [bowl(params) for params in run(optimizer, bowl, 30)[10:]]
    drawn = np.random.default_rng(0).uniform(-1.0, 1.0, (10_000, 2))
    # Random trials would be as good as those in the median.
    assert np.median(late) < 0.5 * np.median([bowl({"x": x, "y": y}) for x, y in drawn])


def test_thompson_sampling_draws_a_function_for_each_suggestion():
    """In a space that is searched exhaustively only the draw can tell two suggestions apart."""
    space = SearchSpace({"n": Int(0, 300)})

    def suggested(acquisition):
        optimizer = MondrianOptimizer(space, seed=0, surrogate="forest", acquisition=acquisition)
        for n in range(0, 301, 20):
            optimizer.tell({"n": n}, abs(n - 130) / 100.0)
        return {optimizer.suggest(np.empty((0, 1)), index)["n"] for index in range(20)}

    assert len(suggested("ei")) == 1
    drawn = suggested("thompson")
    assert len(drawn) > 5
    assert abs(np.median(list(drawn)) - 130) < 60


def test_pending_trials():
    optimizer = MondrianOptimizer(SQUARE, seed=0)
    run(optimizer, bowl, 15)
    assert optimizer.pending == []
    batch = optimizer.ask(6)
    assert optimizer.pending == batch
    assert len({tuple(params.values()) for params in batch}) == 6
    optimizer.tell(batch[2], 1.0)
    assert optimizer.pending == [batch[i] for i in (0, 1, 3, 4, 5)]
    # Failed trials do not run any more either.
    optimizer.tell(batch[0], math.nan)
    optimizer.tell([batch[5], batch[1]], [2.0, 0.5])
    assert optimizer.pending == [batch[i] for i in (3, 4)]
    # A point nobody asked for ends nothing.
    optimizer.tell({"x": 0.123, "y": 0.456}, 1.0)
    assert len(optimizer.pending) == 2


def test_the_same_point_twice_pending_ends_once_per_tell():
    optimizer = MondrianOptimizer(SearchSpace({"c": Categorical(("only",))}), seed=0)
    assert optimizer.ask(3) == [{"c": "only"}] * 3
    optimizer.tell({"c": "only"}, 1.0)
    assert len(optimizer.pending) == 2


def test_pending_trials_matter_until_told():
    def ready(n_pending):
        optimizer = MondrianOptimizer(
            SQUARE, seed=0, surrogate="forest", acquisition="ei", n_startup_trials=5
        )
        run(optimizer, bowl, 20)
        optimizer._pending = np.tile(SQUARE.to_unit({"x": 0.3, "y": -0.2}), (n_pending, 1))
        return optimizer

    untouched, occupied = ready(0), ready(1)
    first = untouched.ask()
    assert occupied.ask() != first
    # Told, it is an observation and nothing else.
    told, asked = ready(0), ready(1)
    for optimizer in (told, asked):
        optimizer.tell({"x": 0.3, "y": -0.2}, 0.0)
    assert asked.pending == []
    assert told.ask() == asked.ask()


@pytest.mark.parametrize(("surrogate", "apart"), [("forest", 0.01), ("gaussian_process", 1e-3)])
def test_batches_spread_out(surrogate, apart):
    """With the model's own best point pending, the batch must not crowd around it."""
    optimizer = MondrianOptimizer(SQUARE, seed=1, surrogate=surrogate, acquisition="ei")
    run(optimizer, bowl, 15)
    batch = np.array([list(params.values()) for params in optimizer.ask(8)])
    distances = np.linalg.norm(batch[:, None] - batch[None], axis=2)[np.triu_indices(8, 1)]
    assert distances.min() > 1e-6
    assert np.median(distances) > apart


def test_telling_is_the_same_one_by_one_in_a_list_and_as_rows():
    rng = np.random.default_rng(0)
    rows = rng.random((12, 2))
    points = [SQUARE.from_unit(row) for row in rows]
    values = [bowl(params) for params in points]
    optimizers = [MondrianOptimizer(SQUARE, seed=0, n_startup_trials=3) for _ in range(4)]
    for params, value in zip(points, values, strict=True):
        optimizers[0].tell(params, value)
    optimizers[1].tell(points, values)
    optimizers[2].tell(points, np.array(values))
    optimizers[3].tell_rows(np.array([SQUARE.to_unit(p) for p in points]), np.array(values))
    assert all(optimizer.n_trials == 12 for optimizer in optimizers)
    suggestions = [optimizer.ask(3) for optimizer in optimizers]
    assert all(batch == suggestions[0] for batch in suggestions)


def test_learns_without_asking():
    """Points from elsewhere are enough: the first suggestion is made by the model."""
    axis = np.linspace(-1.0, 1.0, 15)
    points = [{"x": float(x), "y": float(y)} for x in axis for y in axis]
    optimizer = MondrianOptimizer(SQUARE, seed=0)
    optimizer.tell(points, [bowl(params) for params in points])
    assert max(bowl(params) for params in optimizer.ask(5)) < 0.25


def test_best():
    optimizer = MondrianOptimizer(MIXED, seed=0)
    with pytest.raises(ValueError, match="no trial has been told"):
        _ = optimizer.best
    asked = run(optimizer, mixed, 20)
    params, value = optimizer.best
    expected = min(asked, key=mixed)
    assert value == mixed(expected)
    assert params == {
        name: pytest.approx(v) if isinstance(v, float) else v for name, v in expected.items()
    }
    assert list(params) == list(expected)


def test_predict():
    optimizer = MondrianOptimizer(SQUARE, seed=0, n_startup_trials=10)
    with pytest.raises(ValueError, match="no trial has been told"):
        optimizer.predict({"x": 0.0, "y": 0.0})
    asked = run(optimizer, lambda params: 100.0 + 10.0 * bowl(params), 40)
    values = np.array([100.0 + 10.0 * bowl(params) for params in asked])
    mean, std = optimizer.predict(asked)
    assert mean.shape == std.shape == (40,)
    # Without noise the model reproduces the trials.
    assert np.allclose(mean, values, atol=0.01)
    assert (std < 0.01).all()
    one_mean, one_std = optimizer.predict(asked[7])
    assert one_mean == pytest.approx(mean[7:8])
    assert one_std == pytest.approx(std[7:8], rel=1e-6)
    assert [part.shape for part in optimizer.predict([])] == [(0,), (0,)]


def test_predict_at_new_points():
    points = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 2))
    many = [{"x": float(x), "y": float(y)} for x, y in points]
    values = np.array([100.0 - 10.0 * bowl(params) for params in many])
    optimizer = MondrianOptimizer(SQUARE, seed=0, direction="maximize")
    optimizer.tell(many[:100], values[:100])
    mean, std = optimizer.predict(many[100:])
    error = np.abs(mean - values[100:])
    assert np.corrcoef(mean, values[100:])[0, 1] > 0.8
    # Errors are of the size of the deviations: neither far larger nor far smaller.
    assert np.mean(error < 3.0 * std) > 0.9
    assert np.mean(error > 0.1 * std) > 0.5


def test_predicting_changes_nothing():
    optimizers = [MondrianOptimizer(SQUARE, seed=0, n_startup_trials=3) for _ in range(2)]
    for optimizer in optimizers:
        run(optimizer, bowl, 5)
    for _ in range(20):
        first, second = (optimizer.ask() for optimizer in optimizers)
        assert first == second
        for optimizer in optimizers:
            optimizer.tell(first, bowl(first))
        optimizers[0].predict({"x": 0.1, "y": 0.1})
        _ = optimizers[0].best, optimizers[0].pending


@pytest.mark.parametrize("n_before", [0, 4, 25])
def test_save_and_load(tmp_path, n_before):
    optimizer = MondrianOptimizer(MIXED, seed=5, direction="maximize")
    run(optimizer, mixed, n_before)
    waiting = optimizer.ask(2)
    optimizer.save(tmp_path / "optimizer")
    loaded = MondrianOptimizer.load(tmp_path / "optimizer")
    assert loaded.pending == optimizer.pending
    assert loaded.n_trials == n_before
    for one in (optimizer, loaded):
        one.tell(waiting[1], 3.0)
    assert run(loaded, mixed, 12) == run(optimizer, mixed, 12)
    assert loaded.best == optimizer.best


def test_the_surrogate_learns_only_what_is_new(monkeypatch):
    n_learnt = []
    learn = ForestSurrogate.learn

    def spy(self, rows, values):
        n_learnt.append(len(rows))
        return learn(self, rows, values)

    monkeypatch.setattr(ForestSurrogate, "learn", spy)
    # One acquisition: a search that restarts has two models.
    optimizer = MondrianOptimizer(
        SQUARE, seed=0, surrogate="forest", acquisition="ucb", n_startup_trials=10
    )
    run(optimizer, bowl, 30)
    optimizer.ask(5)
    # Ten at once for the first suggestion of the model, then each trial by itself; pending points
    # are not learnt.
    assert n_learnt == [10] + [1] * 20


def test_suggest_keeps_no_account():
    optimizer = MondrianOptimizer(SQUARE, seed=0)
    run(optimizer, bowl, 15)
    nothing = np.empty((0, 2))
    suggested = [optimizer.suggest(nothing, index) for index in (3, 4, 3)]
    assert suggested[0] == suggested[2] != suggested[1]
    assert optimizer.pending == []
    running = np.array([SQUARE.to_unit(suggested[0])])
    assert optimizer.suggest(running, 3) != suggested[0]


def test_accepts():
    optimizer = MondrianOptimizer(MIXED, seed=0)
    row = MIXED.to_unit({"x": 0.0, "rate": 0.1, "n": 2, "kind": "b", "depth": 4})
    without_first, without_last = (np.where(np.arange(5) == j, np.nan, row) for j in (0, 4))
    rows = np.array([row, without_last, without_first])
    assert optimizer.accepts(rows).tolist() == [True, False, False]
    assert optimizer.accepts(rows[:1]).tolist() == [True]
    assert optimizer.accepts(rows[:0]).shape == (0,)
    tolerant = MondrianOptimizer(MIXED, seed=0, allow_missing=True)
    rows = np.array([np.where(np.arange(5) < 4, np.nan, row), np.full(5, np.nan)])
    assert tolerant.accepts(rows).tolist() == [True, False]


def test_trials_that_lack_what_was_asked_for():
    space = SearchSpace({"n": Int(0, 3), "x": Float(0.0, 1.0)})
    optimizer = MondrianOptimizer(space, seed=0, n_startup_trials=1, allow_missing=True)
    for _ in range(4):
        optimizer.tell({"n": optimizer.ask()["n"]}, 1.0)
        assert optimizer.pending == []
    # Whatever `x` had been, the trials would have been the same.
    assert len(np.unique(optimizer._search.trials.rows[:, 0])) == 4


def test_trials_without_any_parameter_are_refused(tmp_path):
    space = SearchSpace({"n": Int(0, 3), "x": Float(0.0, 1.0)})
    optimizer = MondrianOptimizer(space, seed=0, n_startup_trials=1, allow_missing=True)
    for params in ({}, [{"n": 1}, {}]):
        with pytest.raises(ValueError, match=r"at least one of the parameters .*'n', 'x'.* got {}"):
            optimizer.tell(params, 1.0 if params == {} else [1.0, 2.0])
    optimizer.tell({"n": 1}, 1.0)
    optimizer.save(tmp_path / "state.npz")
    assert MondrianOptimizer.load(tmp_path / "state.npz").n_trials == 1


def test_values_that_are_arrays():
    optimizer = MondrianOptimizer(SQUARE, seed=0)
    optimizer.tell({"x": 0.5, "y": 0.5}, np.array(1.0))
    optimizer.tell([{"x": 0.25, "y": 0.5}], np.array([2.0]))
    assert optimizer.best[1] == 1.0
    assert optimizer.n_trials == 2


def test_representation():
    optimizer = MondrianOptimizer(SQUARE, seed=0, surrogate="forest", direction="maximize")
    optimizer.tell({"x": 0.5, "y": 0.5}, 1.0)
    assert repr(optimizer) == (
        "MondrianOptimizer(direction='maximize', surrogate='forest', n_trials=1, "
        "parameters=['x', 'y'])"
    )


@pytest.mark.parametrize("value", ["abc", "1.0", b"1", None, [1.0, "a"]])
def test_values_that_are_no_numbers(value):
    optimizer = MondrianOptimizer(SQUARE, seed=0)
    with pytest.raises(TypeError, match="`value` must be a number or a sequence of numbers, got"):
        optimizer.tell({"x": 0.5, "y": 0.5}, value)
    assert optimizer.n_trials == 0


def test_numpy_integers_are_integers():
    settings = {"n_startup_trials": 3, "n_estimators": 2, "n_candidates": 100}
    asked = []
    for kind in (int, np.int64, np.uint8):
        given = {name: kind(number) for name, number in settings.items()}
        optimizer = MondrianOptimizer(SQUARE, seed=0, **given)
        run(optimizer, bowl, 5)
        asked.append(optimizer.ask())
    assert asked[0] == asked[1] == asked[2]
    for wrong in (True, np.True_, 2.0, "2"):
        with pytest.raises(TypeError, match="`n_startup_trials` must be an integer, got"):
            MondrianOptimizer(SQUARE, n_startup_trials=wrong)


def test_pending_trials_are_listed_to_the_last_digit(tmp_path):
    """Decoding and encoding a logarithm may differ by a rounding error."""
    kind, power = Categorical(("a", math.inf, 1)), Float(1e-9, 3e4, log=True)
    space = SearchSpace({"rate": Float(1e-4, 1.0, log=True), "kind": kind, "power": power})
    optimizer = MondrianOptimizer(space, seed=0)
    asked = optimizer.ask(8)
    rounded = [space.from_unit(space.to_unit(params)) for params in asked]
    assert sum(a != b for a, b in zip(asked, rounded, strict=True)) > 1
    assert optimizer.pending == asked
    # The lists are the user's own.
    kept = [params.copy() for params in asked]
    asked[1]["rate"] = optimizer.pending[2]["rate"] = 7.0
    assert optimizer.pending == kept
    optimizer.tell(kept[3], 1.0)
    optimizer.tell(kept[5], math.nan)
    kept += optimizer.ask(2)
    del kept[5], kept[3]
    assert optimizer.pending == kept
    optimizer.save(tmp_path / "file")
    loaded = MondrianOptimizer.load(tmp_path / "file")
    assert loaded.pending == pickle.loads(pickle.dumps(optimizer)).pending == kept
    assert len(optimizer._as_asked) == len(kept)


def test_a_pickle_of_an_earlier_version_has_pending_rows():
    optimizer = MondrianOptimizer(SQUARE, seed=0)
    asked = optimizer.ask(2)
    del optimizer._as_asked
    loaded = pickle.loads(pickle.dumps(optimizer))
    assert loaded.pending == [pytest.approx(params, abs=1e-12) for params in asked]


def test_a_pickle_of_an_earlier_version_goes_on():
    optimizer = MondrianOptimizer(SQUARE, seed=0)
    for _ in range(20):
        params = optimizer.ask()
        optimizer.tell(params, params["x"])
    twin = pickle.loads(pickle.dumps(optimizer))
    del optimizer._decoding_rounds
    for model in optimizer._search.models:
        del model._predictability
        vars(model._transform)["_spread"] = vars(model._transform).pop("_range")
    counts = vars(optimizer._search._counts)
    for former, present in (
        ("n_in_vain", "n_without_gain"),
        ("n_still", "n_since_gain"),
        ("gained", "has_improved"),
        ("gain", "least_gain"),
        ("n_at_gain", "n_of_least_gain"),
    ):
        counts[former] = counts.pop(present)
    loaded = pickle.loads(pickle.dumps(optimizer))
    assert loaded._search._counts == twin._search._counts
    assert loaded.ask() == twin.ask()


@pytest.mark.parametrize("seed", range(3))
def test_pending_trials_can_be_told_as_they_are_listed(seed):
    """Decoding and encoding a logarithm may differ by a rounding error."""
    optimizer = MondrianOptimizer(SearchSpace({"rate": Float(1e-4, 1.0, log=True)}), seed=seed)
    optimizer.ask(5)
    for params in optimizer.pending:
        optimizer.tell(params, 0.0)
    assert optimizer.pending == []


@pytest.mark.parametrize("index", range(8))
def test_a_running_trial_is_recognised_by_its_values(index):
    """Workers know the values of running trials, whose rows may differ by a rounding error."""
    space = SearchSpace({"rate": Float(1e-4, 1.0, log=True)})
    optimizer = MondrianOptimizer(space, seed=0)
    optimizer.tell({"rate": 0.3}, 1.0)
    params = optimizer.suggest(np.empty((0, 1)), index)
    assert optimizer.suggest(space.to_unit(params)[None], index) != params

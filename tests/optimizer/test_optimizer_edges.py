"""Spaces, values and arguments at the edge of what is sensible."""

from __future__ import annotations

import math

import numpy as np
import pytest
from searches import run

from mondrian_bo import Categorical, Float, Int, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import UpperConfidenceBound
from mondrian_bo.search_space import Condition, LinearInequality, RestrictedSpace

LINE = SearchSpace({"x": Float(-1.0, 1.0)})
DISCRETE = SearchSpace(
    {
        "n": Int(1, 4, log=True),
        "step": Float(0.0, 1.0, step=0.5),
        "kind": Categorical(("a", None)),
        "sub": Categorical((True, "b", 2.5), condition=Condition("kind", ("a",))),
    }
)
DEEP = SearchSpace(
    {
        "model": Categorical(("tree", "net")),
        "leaves": Int(2, 9, condition=Condition("model", ("tree",))),
        "layers": Int(1, 3, condition=Condition("model", ("net",))),
        "second": Categorical(("relu", "tanh"), condition=Condition("layers", (2, 3))),
        "slope": Float(0.01, 1.0, log=True, condition=Condition("second", ("relu",))),
    }
)


def test_the_first_trial_is_the_centre_and_the_others_are_not():
    asked = MondrianOptimizer(LINE, seed=0).ask(4)
    assert asked[0] == {"x": 0.0}
    assert len({params["x"] for params in asked}) == 4
    # Where the centre may not be suggested, or has been tried, another point comes first.
    off_centre = MondrianOptimizer(LINE, seed=0, is_valid=lambda params: params["x"] > 0.25)
    assert off_centre.ask()["x"] > 0.25
    told = MondrianOptimizer(LINE, seed=0)
    told.tell({"x": 0.0}, 1.0)
    assert told.ask() != {"x": 0.0}


def key(params):
    return tuple(params.items())


def discrete(params):
    return params["n"] + params["step"] + (params.get("sub") == "b")


# Spaces -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_startup_trials", [0, 10, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_discrete_space_is_exhausted_without_repeats(n_startup_trials, seed):
    n_points = int(DISCRETE.cardinality)
    assert n_points == 4 * 3 * (3 + 1)
    optimizer = MondrianOptimizer(DISCRETE, seed=seed, n_startup_trials=n_startup_trials)
    asked = run(optimizer, discrete, n_points)
    assert len({key(params) for params in asked}) == n_points
    # It goes on answering, with points of the space.
    more = run(optimizer, discrete, 5)
    assert {key(params) for params in more} <= {key(params) for params in asked}


@pytest.mark.parametrize(
    ("fixed", "bound", "n_points"), [({}, 4.0, 35), ({"x": 3, "y": 5}, 30.0, 23)]
)
def test_small_parts_of_large_spaces_are_exhausted_without_repeats(fixed, bound, n_points):
    simplex = [LinearInequality({"x": 1.0, "y": 1.0, "z": 1.0}, bound)]
    part = RestrictedSpace({name: Int(0, 99) for name in "xyz"}, fixed, simplex)
    optimizer = MondrianOptimizer(part, seed=0)
    asked = run(optimizer, lambda p: p["x"] ** 2 + (p["y"] - 2) ** 2 + p["z"], n_points)
    assert len({key(params) for params in asked}) == n_points


def test_discrete_space_in_batches_and_with_failures():
    optimizer = MondrianOptimizer(DISCRETE, seed=0, n_startup_trials=5)
    asked = []
    for _ in range(8):
        batch = optimizer.ask(6)
        asked += batch
        values = [discrete(params) for params in batch]
        values[::2] = [math.nan] * 3
        optimizer.tell(batch, values)
    assert len({key(params) for params in asked}) == 48
    assert optimizer.n_trials == 24
    assert optimizer.pending == []


def test_failed_points_are_not_repeated_before_anything_succeeds():
    optimizer = MondrianOptimizer(DISCRETE, seed=0)
    asked = run(optimizer, lambda params: math.nan, 48)
    assert len({key(params) for params in asked}) == 48
    assert optimizer.n_trials == 0
    with pytest.raises(ValueError, match="no trial has been told"):
        _ = optimizer.best
    assert optimizer.ask()
    # One success among failures is a model to start from.
    optimizer.tell({"n": 1, "step": 0.0, "kind": None}, 1.0)
    assert optimizer.ask()


def test_pending_fills_a_discrete_space():
    optimizer = MondrianOptimizer(DISCRETE, seed=0)
    batch = optimizer.ask(50)
    assert len({key(params) for params in batch[:48]}) == 48
    assert len(optimizer.pending) == 50


def test_discrete_space_finds_the_best_early():
    space = SearchSpace({f"x{i}": Int(0, 15) for i in range(3)})
    ranks = []
    for seed in range(6):
        optimizer = MondrianOptimizer(space, seed=seed)
        run(optimizer, lambda p: sum((v - 5) ** 2 for v in p.values()), 40)
        ranks.append(optimizer.best[1])
    values = [sum((v - 5) ** 2 for v in p) for p in np.ndindex(16, 16, 16)]
    rng = np.random.default_rng(0)
    uniform = np.median(rng.choice(values, size=(2000, 40)).min(axis=1))
    assert np.median(ranks) < 0.5 * uniform


@pytest.mark.parametrize(
    "space",
    [
        SearchSpace({"x": Float(2.0, 2.0)}),
        SearchSpace({"n": Int(3, 3)}),
        SearchSpace({"c": Categorical((None,)), "n": Int(1, 1, log=True)}),
    ],
    ids=["float", "int", "two"],
)
def test_one_point(space):
    optimizer = MondrianOptimizer(space, seed=0, n_startup_trials=2)
    asked = run(optimizer, lambda params: 1.5, 5)
    assert all(params == asked[0] for params in asked)
    assert set(asked[0]) == set(space)
    assert optimizer.best == (asked[0], 1.5)
    mean, std = optimizer.predict(asked[0])
    assert mean == pytest.approx([1.5])
    assert std == pytest.approx([0.0], abs=1e-9)


def test_one_point_with_noise():
    optimizer = MondrianOptimizer(SearchSpace({"n": Int(3, 3)}), seed=0)
    values = np.random.default_rng(0).normal(5.0, 2.0, 30)
    for value in values:
        optimizer.tell(optimizer.ask(), value)
    mean, std = optimizer.predict({"n": 3})
    assert mean == pytest.approx([values.mean()], abs=1.0)
    assert std > 0.0


def is_consistent(params):
    """Activity in DEEP, written out."""
    names = {"model"}
    if params["model"] == "tree":
        names |= {"leaves"}
    else:
        names |= {"layers"}
        if params["layers"] > 1:
            names |= {"second"}
            if params["second"] == "relu":
                names |= {"slope"}
    return set(params) == names


def deep(params):
    if params["model"] == "tree":
        return 1.0 + 0.1 * params["leaves"]
    value = 2.0 - 0.5 * params["layers"]
    return value + (abs(math.log10(params["slope"]) + 1.0) if "slope" in params else 0.4)


def test_conditions_of_depth_three():
    best = []
    for seed in range(4):
        optimizer = MondrianOptimizer(DEEP, seed=seed)
        asked = run(optimizer, deep, 40)
        asked += optimizer.ask(5)
        assert all(is_consistent(params) for params in asked)
        # Every branch is tried.
        assert {params["model"] for params in asked} == {"tree", "net"}
        assert {params.get("second") for params in asked} == {None, "relu", "tanh"}
        best.append(optimizer.best)
    # The optimum, 0.5, lies in the innermost branch: layers 3, relu, slope 0.1.
    assert np.median([value for _, value in best]) < 0.7
    assert all(is_consistent(params) for params, _ in best)


def test_trials_of_a_conditional_space_are_checked():
    optimizer = MondrianOptimizer(DEEP, seed=0)
    with pytest.raises(
        ValueError, match=r"must have all active parameters, and lacks \['leaves'\]"
    ):
        optimizer.tell({"model": "tree"}, 1.0)
    for params in ({}, {"leaves": 3}):
        # Without the model nobody knows which other parameters are active.
        with pytest.raises(ValueError, match=r"lacks \['model'\]"):
            optimizer.tell(params, 1.0)
    assert optimizer.n_trials == 0
    # What is inactive does not matter.
    optimizer.tell({"model": "tree", "leaves": 3, "layers": 2}, 1.0)
    assert optimizer.best[0] == {"model": "tree", "leaves": 3}


def test_categorical_only():
    space = SearchSpace({f"c{i}": Categorical(tuple("abcdefgh")) for i in range(6)})
    target = "badcab"

    def n_wrong(params):
        return sum(a != b for a, b in zip(params.values(), target, strict=True))

    found = []
    for seed in range(4):
        optimizer = MondrianOptimizer(space, seed=seed)
        asked = run(optimizer, n_wrong, 40)
        assert len({key(params) for params in asked}) == 40
        found.append(optimizer.best[1])
    # The best of 40 uniform points has at most 2 wrong with probability 0.11 (binomial).
    assert np.median(found) < 2.5


def test_two_hundred_parameters():
    parameters = {f"x{i}": Float(0.0, 1.0) for i in range(120)}
    parameters |= {f"n{i}": Int(1, 64, log=True) for i in range(40)}
    parameters |= {f"c{i}": Categorical(("a", "b", "c")) for i in range(40)}
    optimizer = MondrianOptimizer(SearchSpace(parameters), seed=0)

    def objective(params):
        return sum(params[f"x{i}"] for i in range(120)) + 10 * (params["c0"] == "a")

    asked = run(optimizer, objective, 25)
    assert all(set(params) == set(parameters) for params in asked)
    assert len({key(params) for params in asked}) == 25
    values = [objective(params) for params in asked]
    assert np.mean(values[10:]) < np.mean(values[:10])


# Values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("value", [0.0, -3.5, 1e300, -1e-300])
def test_constant_objective(direction, value):
    optimizer = MondrianOptimizer(LINE, seed=0, direction=direction)
    asked = run(optimizer, lambda params: value, 25)
    assert len({params["x"] for params in asked}) == 25
    # With nothing to prefer, it explores: no half of the line is left alone after the start.
    assert {params["x"] > 0.0 for params in asked[10:]} == {False, True}
    mean, std = optimizer.predict(asked)
    assert mean == pytest.approx([value] * 25)
    assert np.isfinite(std).all()


@pytest.mark.parametrize("scale", [1e300, 1e150, 1e-150, 1e-300])
def test_scale_of_the_values_does_not_matter(scale):
    def objective(params):
        return (params["x"] - 0.3) ** 2

    optimizer, scaled = (MondrianOptimizer(LINE, seed=0) for _ in range(2))
    run(optimizer, objective, 30)
    run(scaled, lambda params: scale * objective(params), 30)
    # The fitted power differs by rounding, and with it may the choice of candidates.
    assert optimizer.best[1] < 1e-3
    assert scaled.best[1] / scale < 1e-3
    mean, std = scaled.predict([{"x": 0.3}, {"x": -0.9}])
    assert np.isfinite(std).all()
    assert mean[0] / scale == pytest.approx(0.0, abs=0.05)
    assert mean[1] / scale > 0.5


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("outlier", [1e300, -1e300, math.inf, -math.inf])
def test_single_outliers_are_survived(direction, outlier):
    sign = 1.0 if direction == "minimize" else -1.0
    optimizer = MondrianOptimizer(LINE, seed=0, direction=direction)
    values = iter([None, outlier] + [None] * 38)

    def objective(params):
        given = next(values)
        return sign * (params["x"] - 0.3) ** 2 if given is None else given

    asked = run(optimizer, objective, 40)
    mean, std = optimizer.predict(asked)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert optimizer.n_trials == 40
    if sign * outlier > 0.0:
        # A very bad one must not blind the model. Random trials are 0.6 away in the median; half of
        # these are the first ones of a fresh epoch.
        assert optimizer.best[1] * sign < 1e-4
        assert np.median([abs(params["x"] - 0.3) for params in asked[20:]]) < 0.4
    else:
        assert optimizer.best[1] == outlier


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_infinite_values_rank_at_the_ends(direction):
    sign = 1.0 if direction == "minimize" else -1.0

    def objective(params):
        return sign * (math.inf if params["x"] < 0.0 else (params["x"] - 0.5) ** 2)

    shares = []
    for seed in range(3):
        optimizer = MondrianOptimizer(LINE, seed=seed, direction=direction)
        asked = run(optimizer, objective, 35)
        assert optimizer.best[1] * sign < 0.01
        shares.append(np.mean([params["x"] < 0.0 for params in asked[15:]]))
    # The bad half is left alone.
    assert np.mean(shares) < 0.35


def test_all_infinite():
    optimizer = MondrianOptimizer(LINE, seed=0, n_startup_trials=2)
    run(optimizer, lambda params: math.inf, 6)
    assert optimizer.best[1] == math.inf
    mean, std = optimizer.predict({"x": 0.0})
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


def test_failed_trials_do_not_count():
    optimizer = MondrianOptimizer(LINE, seed=0, n_startup_trials=4)
    asked = run(optimizer, lambda p: math.nan if p["x"] < 0.0 else p["x"], 25)
    n_failed = sum(params["x"] < 0.0 for params in asked)
    assert 0 < n_failed < 25
    assert optimizer.n_trials == 25 - n_failed
    assert optimizer.best[0]["x"] >= 0.0
    # Continuous points that failed are not met again.
    assert len({params["x"] for params in asked}) == 25


def test_told_rows_outside_the_space():
    optimizer = MondrianOptimizer(LINE, seed=0)
    rows = np.linspace(-1.0, 3.0, 30)[:, None]
    optimizer.tell_rows(rows, (rows[:, 0] - 0.6) ** 2)
    assert optimizer.n_trials == 30
    asked = [params["x"] for params in optimizer.ask(5)]
    assert all(-1.0 <= x <= 1.0 for x in asked)
    # Row 0.6 is x = 0.2: what lies outside informs about the inside.
    assert min(abs(x - 0.2) for x in asked) < 0.2


# Arguments ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"direction": "up"}, "`direction` must be 'minimize' or 'maximize', got 'up'"),
        ({"surrogate": "gp"}, r"`surrogate` must be one of \['gaussian_process'.*got 'gp'"),
        ({"acquisition": "cei"}, "`acquisition` must be one of .*got 'cei'"),
        ({"acquisition": None}, "`acquisition` must be one of .*got None"),
        ({"acquisition": UpperConfidenceBound}, "`acquisition` must be one of"),
        ({"n_startup_trials": -1}, "`n_startup_trials` must be at least 0, got -1"),
        ({"n_startup_trials": 2.0}, "`n_startup_trials` must be an integer, got 2.0"),
        ({"n_estimators": 0}, "`n_estimators` must be at least 1, got 0"),
        ({"n_estimators": True}, "`n_estimators` must be an integer, got True"),
        ({"n_candidates": 0}, "`n_candidates` must be at least 1, got 0"),
    ],
)
def test_refused_settings(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        MondrianOptimizer(LINE, **arguments)


def test_refused_space_and_kappa():
    with pytest.raises(TypeError, match="`space` must be a SearchSpace, got"):
        MondrianOptimizer({"x": Float(0.0, 1.0)})
    with pytest.raises(ValueError, match="`kappa` must be finite and >= 0"):
        MondrianOptimizer(LINE, acquisition=UpperConfidenceBound(-1.0))


@pytest.mark.parametrize("n", [0, -3])
def test_refused_batch(n):
    with pytest.raises(ValueError, match="`n` must be a positive integer or None"):
        MondrianOptimizer(LINE).ask(n)


@pytest.mark.parametrize("n", [1.5, "3"])
def test_refused_type_of_batch(n):
    with pytest.raises(TypeError, match=f"`n` must be a positive integer or None, got {n!r}"):
        MondrianOptimizer(LINE).ask(n)


@pytest.mark.parametrize(
    ("params", "value", "error", "message"),
    [
        ({"y": 0.0}, 1.0, KeyError, "unknown parameter 'y'"),
        ({}, 1.0, ValueError, r"`params` must have all .* lacks \['x'\]: got {}"),
        ({"x": 7.0}, 1.0, ValueError, "parameter 'x': must be in"),
        ({"x": "0.5"}, 1.0, TypeError, "parameter 'x'"),
        ({"x": 0.5}, None, TypeError, "None"),
        ({"x": 0.5}, [1.0, 2.0], ValueError, "Got 1 trials, but 2 values"),
        ([{"x": 0.5}, {"x": 0.1}], 2.0, ValueError, "Got 2 trials, but 1 values"),
        ([{"x": 0.5}, {"x": 7.0}], [1.0, 2.0], ValueError, "must be in"),
        ([{"x": 0.5}, {"x": 0.6}], [1.0, "bad"], TypeError, "must be a number .* got .*bad"),
    ],
)
def test_refused_trials_leave_nothing_behind(params, value, error, message):
    optimizer = MondrianOptimizer(LINE, seed=0)
    with pytest.raises(error, match=message):
        optimizer.tell(params, value)
    assert optimizer.n_trials == 0


@pytest.mark.parametrize("n_candidates", [1, 2, 3, 5])
@pytest.mark.parametrize("space", [LINE, DEEP], ids=["line", "deep"])
def test_few_candidates(space, n_candidates):
    optimizer = MondrianOptimizer(space, seed=0, n_candidates=n_candidates, n_startup_trials=2)
    asked = run(optimizer, lambda params: float(len(params)), 8)
    assert all(params == space.from_unit(space.to_unit(params)) for params in asked)


@pytest.mark.parametrize("n_startup_trials", [0, 1])
def test_few_startup_trials(n_startup_trials):
    optimizer = MondrianOptimizer(LINE, seed=0, n_startup_trials=n_startup_trials, n_estimators=1)
    asked = run(optimizer, lambda params: params["x"], 10)
    assert len({params["x"] for params in asked}) == 10


@pytest.mark.parametrize(
    ("d", "is_conditional", "expected"),
    [(64, True, 600), (100, False, 600), (100, True, 384), (1000, True, 200)],
)
def test_wide_conditional_spaces_have_fewer_candidates(d, is_conditional, expected):
    condition = Condition("kind", ("a",)) if is_conditional else None
    space = SearchSpace(
        {
            "kind": Categorical(["a", "b"]),
            **{f"x{i}": Float(0.0, 1.0, condition=condition) for i in range(d - 1)},
        }
    )
    optimizer = MondrianOptimizer(space, seed=0)
    assert optimizer._search.whole.n_candidates == expected


@pytest.mark.parametrize("low", [0.0, 1e6])
def test_points_that_failed_are_not_repeated_in_narrow_ranges(low):
    # Far from 0, decoding moves an entry of a row by more than the digits that are compared.
    space = SearchSpace({"x": Float(low, low + 1.0), "kind": Categorical(("a", "b"))})
    asked = []
    for seed in range(3):
        optimizer = MondrianOptimizer(space, seed=seed)
        for _ in range(40):
            params = optimizer.ask()
            x = params["x"] - low
            optimizer.tell(params, np.nan if abs(x - 0.7) < 0.02 else (x - 0.7) ** 2)
            asked.append((seed, *params.values()))
    assert len(set(asked)) == len(asked)

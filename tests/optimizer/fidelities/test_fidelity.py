"""A fidelity: costs, trend, the worth of cheap trials, and the search at the target."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.stats import norm
from searches import run

from mondrian_bo import Categorical, Condition, Float, Int, MondrianOptimizer, SearchSpace
from mondrian_bo.optimizer.fidelities.cost_model import CostModel
from mondrian_bo.optimizer.fidelities.fidelity import Fidelity
from mondrian_bo.optimizer.fidelities.fidelity_search import screening_gains
from mondrian_bo.optimizer.fidelities.fidelity_surrogate import (
    SmoothFidelitySurrogate,
    with_fidelity,
)
from mondrian_bo.optimizer.fidelities.target_space import TargetSpace
from mondrian_bo.search_space import RestrictedSpace
from mondrian_bo.surrogates.base import Columns
from mondrian_bo.surrogates.registry import get_surrogate

LINE = SearchSpace({"x": Float(0.0, 1.0), "s": Float(0.0, 1.0)})
EPOCHS = SearchSpace(
    {
        "kind": Categorical(("a", "b")),
        "n": Int(1, 50, log=True),
        "x": Float(0.0, 1.0),
        "depth": Int(1, 9, condition=Condition("kind", ("a",))),
    }
)


def wave(x):
    return math.sin(9.0 * x) + x


# The fidelity -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameter", "choice", "target", "first"),
    [
        (Int(1, 50), "n", 50, 1),
        (Int(1, 50, log=True), {"n": 30}, 30, 1),
        (Float(0.01, 1.0, log=True), {"n": 0.01}, 0.01, 1.0),
        (Int(0, 1), "n", 1, 0),
    ],
)
def test_target_and_levels(parameter, choice, target, first):
    fidelity = Fidelity(SearchSpace({"x": Float(0, 1), "n": parameter}), choice)
    assert fidelity.target == target
    values = [parameter.from_unit(one) for one in fidelity.levels.tolist()]
    assert values[0] == first
    assert target not in values
    # All are between the far end and the target, and nearer and nearer.
    distances = [abs(value - target) for value in values]
    assert distances == sorted(distances, reverse=True)
    assert max(distances) == abs(first - target)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("high", [50, 2 * 10**9, 10**11])
def test_only_the_target_is_the_target(log, high):
    """Neighbours of large integers are closer to each other than rounding errors of floats."""
    space = SearchSpace({"n": Int(1, high, log=log), "x": Float(0.0, 1.0)})
    for target in (high, high // 2):
        values = [one for one in (target - 1, target, target + 1) if one <= high]
        rows = np.array([space.to_unit({"n": one, "x": 0.5}) for one in values])
        found = Fidelity(space, {"n": target}).is_target(rows).tolist()
        assert found == [one == target for one in values]


def test_pickles_of_earlier_versions_have_one_tolerance():
    fidelity = Fidelity(LINE, "s")
    state = fidelity.__dict__.copy()
    del state["_tolerance"]
    former = Fidelity.__new__(Fidelity)
    former.__setstate__(state)
    rows = np.array([[0.5, 1.0], [0.5, 1.0 - 1e-6]])
    assert former.is_target(rows).tolist() == fidelity.is_target(rows).tolist() == [True, False]


def test_costs_without_data_are_proportional():
    rows = np.array([[0.3, Int(1, 50).to_unit(n)] for n in (1, 5, 25, 50)])
    fidelity = Fidelity(SearchSpace({"x": Float(0, 1), "n": Int(1, 50)}), "n")
    np.testing.assert_allclose(np.exp(fidelity.log_costs(rows)), [0.02, 0.1, 0.5, 1.0])
    np.testing.assert_allclose(CostModel(fidelity, np.zeros(2, int)).log_ratios(rows[-1:]), 0.0)
    finest = Fidelity(SearchSpace({"h": Float(0.1, 1.0, log=True)}), {"h": 0.1})
    np.testing.assert_allclose(np.exp(finest.log_costs(np.array([[1.0], [0.0]]))), [0.1, 1.0])


@pytest.mark.parametrize(
    ("choice", "error", "message"),
    [
        ("y", KeyError, "unknown parameter 'y'"),
        ("kind", ValueError, "'kind' is categorical"),
        ({"n": 51}, ValueError, r"the target of 'n' must be in \[1, 50\]"),
        ({"n": "all"}, TypeError, "the target of 'n' `value` must be a number|must be a number"),
        ({"n": 5, "x": 1}, ValueError, "exactly one name"),
        (["n"], TypeError, "must be a name"),
    ],
)
def test_bad_fidelities_are_refused(choice, error, message):
    with pytest.raises(error, match=message):
        MondrianOptimizer(EPOCHS, fidelity=choice)


def test_what_a_fidelity_does_not_go_with():
    with pytest.raises(ValueError, match="single objective"):
        MondrianOptimizer(EPOCHS, fidelity="n", directions=["minimize"] * 2)
    with pytest.raises(ValueError, match="no earlier studies"):
        MondrianOptimizer(LINE, fidelity="s", warm_start=[([{"x": 0.1, "s": 1.0}], [1.0])])
    with pytest.raises(ValueError, match="`cost` needs"):
        MondrianOptimizer(LINE).tell({"x": 0.1, "s": 1.0}, 0.0, cost=1.0)
    optimizer = MondrianOptimizer(LINE, fidelity="s")
    with pytest.raises(ValueError, match="positive and finite"):
        optimizer.tell({"x": 0.1, "s": 1.0}, 0.0, cost=0.0)
    with pytest.raises(ValueError, match="2 values"):
        optimizer.tell({"x": 0.1, "s": 1.0}, 0.0, cost=[1.0, 2.0])
    assert optimizer.n_trials == 0
    with pytest.raises(TypeError, match="no room for a fidelity"):
        optimizer.save("never.npz")


# Costs --------------------------------------------------------------------------------------------


def test_the_cost_model_is_recovered():
    rng = np.random.default_rng(0)
    fidelity = Fidelity(EPOCHS, "n")
    rows = EPOCHS.sample(80, rng)

    def cost(row):
        params = EPOCHS.from_unit(row)
        overhead = 10.0 if params["kind"] == "a" else 3.0
        return overhead * params["n"] ** 0.7 * math.exp(params["x"])

    costs = np.array([cost(row) for row in rows])
    model = CostModel(fidelity, EPOCHS.n_choices)
    known = costs.copy()
    known[:5] = np.nan, np.inf, 0.0, -1.0, np.nan
    model.tell(rows, known)
    assert len(model) == 75
    others = EPOCHS.sample(30, rng)
    wanted = np.array([cost(row) for row in others])
    np.testing.assert_allclose(model.predict(others), wanted, rtol=0.15)
    full = np.array([cost(row) for row in fidelity.at(others, fidelity.unit)])
    np.testing.assert_allclose(np.exp(model.log_ratios(others)), wanted / full, rtol=0.15)
    # A few costs, all at one fidelity, tell nothing of the others.
    model.restore(0)
    model.tell(fidelity.at(rows[:5], fidelity.unit), np.full(5, 7.0))
    np.testing.assert_allclose(model.log_ratios(others), fidelity.log_costs(others), atol=1e-6)


# The worth of cheap trials ------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [-2.0, 0.0, 0.7])
@pytest.mark.parametrize("correlation", [0.3, 0.9, 1.0])
def test_screening_gains_are_those_of_a_simulation(gap, correlation):
    def improvement(mean, std):
        if std == 0.0:
            return np.maximum(mean, 0.0)
        return mean * norm.cdf(mean / std) + std * norm.pdf(mean / std)

    std, rng = 1.3, np.random.default_rng(0)
    means = gap + correlation * std * rng.standard_normal(400_000)
    remaining = std * math.sqrt(1.0 - correlation**2)
    now, then = improvement(gap, std), improvement(means, remaining)
    excess = np.maximum(then / now - 1.0, 0.0)
    found = screening_gains(gap, std, np.array([correlation * std]))[0]
    assert abs(found - excess.mean()) < 5.0 * excess.std() / math.sqrt(len(excess)) + 1e-3


def test_screening_gains_at_the_ends():
    gains = screening_gains(-0.5, 1.0, np.array([0.0, 1e-3, 0.5, 1.0, 2.0]))
    assert gains[0] == pytest.approx(0.0, abs=1e-12)
    assert (np.diff(gains[:4]) > 0.0).all() and gains[3] <= 1.0
    assert gains[4] == pytest.approx(gains[3])
    assert not screening_gains(1.0, 0.0, np.ones(2)).any()
    # With hardly any chance, a decisive cheap trial is nearly always worth all of the cost.
    assert screening_gains(-5.0, 1.0, np.array([1.0]))[0] > 0.99


def next_fidelity(function, seed, n_points, cheap, levels=(0.0, 1.0)):
    """Return the next fidelity after random points of a line at several fidelities."""
    optimizer = MondrianOptimizer(LINE, fidelity="s", seed=seed, n_startup_trials=2)
    for x in np.random.default_rng(seed).random(n_points).tolist():
        for s in levels:
            optimizer.tell({"x": x, "s": s}, function(x, s), cost=cheap + (1.0 - cheap) * s)
    return optimizer.ask()["s"]


def test_cheap_where_correlated_and_full_where_not():
    def unlike(x, s):
        return math.sin(17.0 * x + 40.0 * s)

    seeds = range(6)
    assert [next_fidelity(lambda x, s: wave(x), seed, 4, cheap=0.1) for seed in seeds] == [0.0] * 6
    # Where an improvement is unlikely, even a small correlation is worth something.
    assert [next_fidelity(unlike, seed, 14, cheap=0.5) for seed in seeds].count(1.0) >= 5
    # Without savings there is no reason for a cheap trial.
    levels = (0.0, 0.1, 0.5, 1.0)
    found = [next_fidelity(lambda x, s: wave(x), seed, 3, 1.0, levels) for seed in seeds]
    assert found == [1.0] * 6


# The model ----------------------------------------------------------------------------------------


def test_at_the_target_only_the_model_is_the_one_without_a_fidelity():
    plain = MondrianOptimizer(SearchSpace({"x": Float(0.0, 1.0)}), seed=0)
    other = MondrianOptimizer(LINE, fidelity="s", seed=0)
    for x in np.random.default_rng(1).random(12).tolist():
        plain.tell({"x": x}, wave(x))
        other.tell({"x": x, "s": 1.0}, wave(x))
    places = np.linspace(0.0, 1.0, 21).tolist()
    wanted = plain.predict([{"x": x} for x in places])
    found = other.predict([{"x": x, "s": 1.0} for x in places])
    np.testing.assert_allclose(found[0], wanted[0], atol=2e-3)
    np.testing.assert_allclose(found[1], wanted[1], atol=2e-3)
    assert plain.best[1] == other.best[1]


def test_the_model_of_a_fidelity_is_smooth_and_its_moments_agree():
    rng = np.random.default_rng(0)
    rows = rng.random((30, 2))
    inner = get_surrogate("gaussian_process")(
        Columns(LINE.n_choices, False), np.random.SeedSequence(0)
    )
    model = with_fidelity(inner, Fidelity(LINE, "s"))
    assert isinstance(model, SmoothFidelitySurrogate)
    model.learn(rows, np.array([wave(x) + s for x, s in rows]))
    places = rng.uniform(0.1, 0.9, (5, 2))
    means, stds = model.predict(places)
    joint_means, covariances = model.joint(places)
    np.testing.assert_allclose(joint_means, means[0], rtol=1e-9)
    np.testing.assert_allclose(np.sqrt(covariances.diagonal()), stds[0], rtol=1e-6)
    draws = model.draw_at(places, 20_000, rng)
    np.testing.assert_allclose(np.cov(draws.T), covariances, atol=0.05 * covariances.max())
    found = model.gradients(places)
    for j in range(2):
        step = 1e-4 * np.eye(2)[j]
        ahead, behind = model.predict(places + step), model.predict(places - step)
        slopes = [(one - other) / 2e-4 for one, other in zip(ahead, behind, strict=True)]
        np.testing.assert_allclose(found.mean_gradients[:, :, j], slopes[0], rtol=1e-2, atol=1e-3)
        np.testing.assert_allclose(found.std_gradients[:, :, j], slopes[1], rtol=1e-2, atol=1e-3)
    assert (model.predict_targets(places)[1] > stds).all()


def test_fidelities_are_expected_to_be_correlated():
    optimizer = MondrianOptimizer(LINE, fidelity="s", seed=0)
    plain = MondrianOptimizer(LINE, seed=0)
    for one in (optimizer, plain):
        for x in np.linspace(0.0, 1.0, 12).tolist():
            one.tell({"x": x, "s": 0.0}, wave(x))
    places = [{"x": x, "s": 1.0} for x in np.linspace(0.05, 0.95, 40).tolist()]
    wanted = [wave(place["x"]) for place in places]
    found, other = (np.corrcoef(one.predict(places)[0], wanted)[0, 1] for one in (optimizer, plain))
    assert found > 0.98 and found > other


def test_joint_moments_of_many_leaves():
    rng = np.random.default_rng(0)
    surrogate = get_surrogate("gaussian_process")(
        Columns(LINE.n_choices, False), np.random.SeedSequence(0), block_size=30
    )
    rows = rng.random((90, 2))
    surrogate.learn(rows, np.array([wave(x) + s for x, s in rows]))
    places = rng.random((6, 2))
    means, stds = surrogate.predict(places)
    assert len(means) == 2
    joint_means, covariances = surrogate.joint(places)
    np.testing.assert_allclose(joint_means, means.mean(axis=0), rtol=1e-9)
    variances = (stds**2).mean(axis=0) + means.var(axis=0)
    np.testing.assert_allclose(covariances.diagonal(), variances, rtol=1e-6)
    np.testing.assert_allclose(covariances, covariances.T, atol=1e-12)


# The search ---------------------------------------------------------------------------------------


def test_first_trials_are_cheap_and_the_best_of_them_is_repeated_at_the_target():
    optimizer = MondrianOptimizer(LINE, fidelity="s", seed=3)
    asked = run(optimizer, lambda p: wave(p["x"]) - p["s"], 8)
    fidelities = [one["s"] for one in asked]
    assert [s for s in fidelities if s == 0.0] == [0.0] * 4
    assert fidelities[3] == fidelities[7] == 1.0
    assert 0.0 < fidelities[1] == fidelities[5] < 1.0
    assert asked[3]["x"] == min((asked[0], asked[2]), key=lambda p: wave(p["x"]))["x"]


def test_no_step_compares_values_of_different_fidelities(monkeypatch):
    def fail(*arguments):
        pytest.fail("a step that compares values of trials")

    for name in ("plateau_steps", "draw_quadratic", "offspring"):
        monkeypatch.setattr(f"mondrian_bo.optimizer.search.step_choice.{name}", fail)
    optimizer = MondrianOptimizer(LINE, fidelity="s", seed=0)
    # More than the 32 trials after which a search in two dimensions makes such steps; three equal
    # values are a plateau.
    xs = np.linspace(0.0, 1.0, 42).tolist()
    optimizer.tell(
        [{"x": x, "s": k % 3 / 2} for k, x in enumerate(xs)], [max(wave(x), -0.9) for x in xs]
    )
    run(optimizer, lambda p: wave(p["x"]) - p["s"], 12)


def test_before_a_trial_at_the_target_there_is_no_best():
    optimizer = MondrianOptimizer(LINE, fidelity="s", seed=0, n_startup_trials=2)
    xs = np.linspace(0.0, 1.0, 9).tolist()
    optimizer.tell([{"x": x, "s": 0.0} for x in xs], [wave(x) for x in xs])
    with pytest.raises(ValueError, match="feasible at the target"):
        _ = optimizer.best
    assert optimizer.pareto_front() == []
    # The point that is best so far comes first.
    first = optimizer.ask()
    assert first == {"x": xs[int(np.argmin([wave(x) for x in xs]))], "s": 1.0}
    optimizer.tell(first, 50.0)
    assert optimizer.best == (first, 50.0)


def spend(budget, seed, **settings):
    """Return an optimizer after a search with cheap fidelities, and the number of its trials."""
    optimizer = MondrianOptimizer(LINE, fidelity="s", seed=seed, **settings)
    spent, n_trials = 0.0, 0
    while spent < budget:
        params = optimizer.ask()
        cost = 0.05 + 0.95 * params["s"]
        bias = 0.3 * (1.0 - params["s"]) * math.cos(3.0 * params["x"])
        optimizer.tell(params, wave(params["x"]) + bias, cost=cost)
        spent, n_trials = spent + cost, n_trials + 1
    return optimizer, n_trials


@pytest.mark.parametrize("seed", range(3))
def test_the_search_saves_costs(seed):
    optimizer, n_trials = spend(8.0, seed)
    params, value = optimizer.best
    assert params["s"] == 1.0
    smallest = min(wave(x) for x in np.linspace(0.0, 1.0, 1001))
    # Eight trials at the target are quasi-random ones, of which few are so near.
    assert value - smallest < 0.02
    assert n_trials > 14


@pytest.mark.parametrize("surrogate", ["forest", "kernel"])
def test_surrogates_without_covariances(surrogate):
    optimizer, _ = spend(4.5, 0, surrogate=surrogate)
    assert optimizer.best[0]["s"] == 1.0


def test_at_most_half_of_the_cost_is_spent_below_the_target():
    rng = np.random.default_rng(0)
    optimizer = MondrianOptimizer(LINE, fidelity="s", seed=0)
    spent = {True: 0.0, False: 0.0}
    for _ in range(60):
        params = optimizer.ask()
        # Noise has no structure that would save costs.
        cost = 0.2 + 0.8 * params["s"]
        optimizer.tell(params, rng.normal(), cost=cost)
        spent[params["s"] == 1.0] += cost
    assert spent[True] > 5.0
    # The bound holds up to the last trial before each of those at the target.
    assert spent[False] < 1.3 * spent[True] + 3.0


def test_conditions_failures_and_batches():
    optimizer = MondrianOptimizer(EPOCHS, fidelity={"n": 40}, seed=0, direction="maximize")
    rng = np.random.default_rng(0)
    for _ in range(8):
        batch = optimizer.ask(4)
        for params in batch:
            assert ("depth" in params) == (params["kind"] == "a")
            assert params["n"] <= 40
            value = -((params["x"] - 0.6) ** 2) - 1.0 / params["n"] + 0.05 * params.get("depth", 1)
            optimizer.tell(params, math.nan if rng.random() < 0.2 else value)
    assert optimizer.pending == []
    assert optimizer.best[0]["n"] == 40
    copy = pickle.loads(pickle.dumps(optimizer))
    assert copy.ask() == optimizer.ask()


def test_a_conditional_fidelity():
    space = SearchSpace(
        {
            "model": Categorical(("net", "tree")),
            "n": Int(1, 30, condition=Condition("model", ("net",))),
            "x": Float(0.0, 1.0),
        }
    )
    optimizer = MondrianOptimizer(space, fidelity="n", seed=0)
    # Trials without the fidelity count.
    optimizer.tell({"model": "tree", "x": 0.5}, 0.1)
    assert optimizer.best == ({"model": "tree", "x": 0.5}, 0.1)

    def objective(params):
        return (params["x"] - 0.4) ** 2 + 0.5 / params.get("n", 3)

    run(optimizer, objective, 20)
    params, value = optimizer.best
    assert params["model"] == "net" and params["n"] == 30 and value < 0.02


def test_valid_points_and_a_finite_space():
    space = SearchSpace({"a": Int(0, 5), "b": Int(0, 5), "n": Int(1, 9)})
    optimizer = MondrianOptimizer(
        space, fidelity="n", seed=0, is_valid=lambda p: p["a"] + p["b"] <= 7
    )
    asked = run(optimizer, lambda p: abs(p["a"] - 5) + abs(p["b"] - 5) + 1 / p["n"], 30)
    assert all(p["a"] + p["b"] <= 7 for p in asked)
    assert len({tuple(p.values()) for p in asked}) == 30
    assert optimizer.best[0]["a"] + optimizer.best[0]["b"] == 7


def test_costs_of_an_interrupted_call_are_undone():
    optimizer = MondrianOptimizer(LINE, fidelity="s", seed=0)
    optimizer.tell({"x": 0.5, "s": 0.0}, 1.0, cost=2.0)
    optimizer._search.tell = None
    with pytest.raises(TypeError):
        optimizer.tell({"x": 0.6, "s": 0.0}, 1.0, cost=3.0)
    del optimizer._search.tell
    assert len(optimizer._costs) == 2
    assert optimizer.n_trials == 1
    assert len(optimizer._costs) == 1


def test_a_part_of_a_space_at_the_target():
    fidelity = Fidelity(EPOCHS, {"n": 20})
    part = TargetSpace(RestrictedSpace(EPOCHS, {"x": 0.25}), fidelity)
    rows = part.sample(50, np.random.default_rng(0))
    decoded = [EPOCHS.from_unit(row) for row in rows]
    assert {(one["n"], one["x"]) for one in decoded} == {(20, 0.25)}
    assert {one["kind"] for one in decoded} == {"a", "b"}
    finite = SearchSpace({"a": Int(1, 3), "n": Int(1, 1000), "c": Categorical(("u", "v"))})
    part = TargetSpace(finite, Fidelity(finite, "n"))
    assert part.cardinality == 6
    found = [tuple(finite.from_unit(row).values()) for row in part.enumerate_rows()]
    assert sorted(found) == [(a, 1000, c) for a in (1, 2, 3) for c in "uv"]


def test_first_trials_that_fail_are_followed_by_other_fidelities():
    space = SearchSpace({"x": Float(0.0, 1.0), "n": Int(1, 50, log=True)})
    optimizer = MondrianOptimizer(space, fidelity="n", seed=0)
    asked = []
    for _ in range(8):
        params = optimizer.ask()
        asked.append(params["n"])
        optimizer.tell(params, math.nan if params["n"] < 5 else params["x"])
    assert asked[0] == asked[2] == 1
    assert 1 < asked[1] < 50
    assert asked[3] == 50


@pytest.mark.filterwarnings("error")
def test_cheap_trials_that_cost_more_than_a_float_can_say():
    """In units of the cost at the target."""
    optimizer = MondrianOptimizer(EPOCHS, fidelity="n", seed=0)
    for _ in range(20):
        params = optimizer.ask()
        cost = 1e300 if params["n"] < 25 else 1e-300
        optimizer.tell(params, wave(params["x"]) + 1.0 / params["n"], cost=cost)

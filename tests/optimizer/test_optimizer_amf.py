"""Aggregated Mondrian forests as the surrogate of the optimizer and of the sampler."""

from __future__ import annotations

import math

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from searches import run
from studies import conditional, is_consistent, make_study, optimize, parameters, states

from mondrian_bo import (
    Categorical,
    Float,
    Int,
    MondrianOptimizer,
    MondrianSampler,
    SearchSpace,
)
from mondrian_bo.search_space import Condition
from mondrian_bo.surrogates.amf.surrogate import AMFSurrogate

SQUARE = SearchSpace({"x": Float(-1.0, 1.0), "y": Float(-1.0, 1.0)})
BRANIN = SearchSpace({"x": Float(-5.0, 10.0), "y": Float(0.0, 15.0)})
SPACES = {
    "float": SQUARE,
    "int": SearchSpace({"m": Int(0, 6), "n": Int(1, 1000, log=True)}),
    "categorical": SearchSpace(
        {"a": Categorical(("p", "q", None)), "b": Categorical((1, 2, 3, 4))}
    ),
    "conditional": SearchSpace(
        {
            "x": Float(-2.0, 2.0),
            "rate": Float(1e-4, 1.0, log=True),
            "kind": Categorical(("a", "b", None)),
            "depth": Int(1, 64, log=True, condition=Condition("kind", ("b",))),
        }
    ),
}


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] + 0.2) ** 2


def branin(params):
    x, y = params["x"], params["y"]
    bent = y - 5.1 / (4.0 * math.pi**2) * x**2 + 5.0 / math.pi * x - 6.0
    return bent**2 + 10.0 * (1.0 - 0.125 / math.pi) * math.cos(x) + 10.0


def anything(params):
    """Return a function of the parameters of any of the spaces."""
    value = 0.0
    for name, wanted in {"x": 0.5, "y": -0.2, "m": 4, "b": 3}.items():
        value += (params.get(name, wanted) - wanted) ** 2
    value += abs(math.log10(params.get("rate", 0.01)) + 2.0) + abs(math.log10(params.get("n", 30)))
    value += 0.05 * params["depth"] if params.get("kind", "b") == "b" and "depth" in params else 0.5
    return value + (params.get("a", "q") != "q")


def make_optimizer(space=SQUARE, **settings):
    return MondrianOptimizer(space, surrogate="amf", **{"seed": 0, **settings})


# The optimizer ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("acquisition", ["auto", "thompson"])
def test_every_kind_of_space(name, acquisition):
    space = SPACES[name]
    settings = {"acquisition": acquisition, "n_startup_trials": 5}
    optimizer = make_optimizer(space, **settings)
    asked = run(optimizer, anything, 35)
    for params in asked:
        assert space.from_unit(space.to_unit(params)).keys() == params.keys()
        assert ("depth" in params) == (params.get("kind") == "b")
    mean, std = optimizer.predict(asked)
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(std))
    assert np.all(std >= 0.0)
    values = np.array([anything(params) for params in asked])
    assert optimizer.best[1] == values.min()
    # The model has learnt the function, and looks where it is good.
    assert np.corrcoef(mean, values)[0, 1] > 0.8
    assert run(make_optimizer(space, **settings), anything, 35) == asked
    assert run(make_optimizer(space, seed=1, **settings), anything, 35) != asked


def test_same_seed_same_trials():
    first = run(make_optimizer(seed=3), bowl, 25)
    assert run(make_optimizer(seed=3), bowl, 25) == first
    # The first trial is the centre.
    assert not any(params in first for params in run(make_optimizer(seed=4), bowl, 25)[1:])
    # The forest suggests something else, as soon as there is a model.
    other = run(MondrianOptimizer(SQUARE, surrogate="forest", seed=3), bowl, 25)
    assert other[:10] == first[:10]
    assert not any(params in first for params in other[10:])


def test_minimising_is_maximising_the_negative():
    down, up = make_optimizer(), make_optimizer(direction="maximize")
    asked = run(down, bowl, 25)
    assert run(up, lambda params: -bowl(params), 25) == asked
    assert np.array_equal(down.predict(asked)[0], -up.predict(asked)[0])


def test_better_than_random_on_branin():
    found, drawn = [], []
    for seed in range(5):
        optimizer = make_optimizer(BRANIN, seed=seed)
        run(optimizer, branin, 60)
        found.append(optimizer.best[1])
        points = np.random.default_rng(seed).random((60, 2)) * 15.0 - [5.0, 0.0]
        drawn.append(min(branin({"x": x, "y": y}) for x, y in points))
    assert min(found) > 0.397887
    assert np.median(found) < 0.6
    assert np.median(found) < np.median(drawn)


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("n_told", [1, 3, 4, 8, 20])
@pytest.mark.parametrize("acquisition", ["ei", "thompson"])
def test_pending_trials_change_nothing(name, n_told, acquisition):
    space = SPACES[name]
    settings = {"n_startup_trials": 1, "acquisition": acquisition}
    optimizer, replica = (make_optimizer(space, **settings) for _ in range(2))
    rows = np.random.default_rng(0).random((n_told + 10, space.n_dimensions))
    points = [space.from_unit(row) for row in rows]
    for one in (optimizer, replica):
        one.tell(points[:n_told], [anything(params) for params in points[:n_told]])
    # When a model learns is part of its history: both are asked at the same times.
    before = optimizer.predict(points)
    assert np.array_equal(replica.predict(points), before)
    batch = optimizer.ask(6)
    assert len(optimizer.pending) == len(batch) == 6
    for own, other in zip(before, optimizer.predict(points), strict=True):
        assert np.array_equal(own, other)
    # Nor is anything left behind that shows later.
    for one in (optimizer, replica):
        one.tell(batch, [anything(params) for params in batch])
        one.tell(points[n_told:], [anything(params) for params in points[n_told:]])
    for own, other in zip(optimizer.predict(points), replica.predict(points), strict=True):
        assert np.array_equal(own, other)


def test_batches_spread_out():
    optimizer = make_optimizer(acquisition="ei")
    run(optimizer, bowl, 15)
    batch = np.array([list(params.values()) for params in optimizer.ask(8)])
    distances = np.linalg.norm(batch[:, None] - batch[None], axis=2)[np.triu_indices(8, 1)]
    assert distances.min() > 1e-6
    assert np.median(distances) > 0.01


def test_the_surrogate_learns_only_what_is_new(monkeypatch):
    n_learnt = []
    learn = AMFSurrogate.learn

    def spy(self, rows, values):
        n_learnt.append(len(rows))
        return learn(self, rows, values)

    monkeypatch.setattr(AMFSurrogate, "learn", spy)
    optimizer = make_optimizer()
    run(optimizer, bowl, 30)
    optimizer.ask(5)
    assert n_learnt == [10] + [1] * 20


def test_predictions():
    points = np.random.default_rng(0).uniform(-1.0, 1.0, (400, 2))
    many = [{"x": float(x), "y": float(y)} for x, y in points]
    values = np.array([100.0 + 10.0 * bowl(params) for params in many])
    optimizer = make_optimizer()
    optimizer.tell(many[:200], values[:200])
    mean, std = optimizer.predict(many[200:])
    error = np.abs(mean - values[200:])
    assert np.corrcoef(mean, values[200:])[0, 1] > 0.9
    assert np.mean(error < 2.0 * std) > 0.9
    assert np.mean(error > 0.1 * std) > 0.5


@pytest.mark.parametrize("value", [0.0, 7.0, 1e300])
def test_constant_and_extreme_outcomes(value):
    optimizer = make_optimizer(n_startup_trials=2)
    run(optimizer, lambda params: value, 20)
    mean, std = optimizer.predict([{"x": 0.1, "y": 0.9}])
    assert mean[0] == pytest.approx(value, rel=1e-6)
    assert std[0] <= 1e-6 * max(value, 1.0)
    optimizer.tell({"x": 0.0, "y": 0.0}, math.inf)
    optimizer.tell({"x": 0.1, "y": 0.0}, -math.inf)
    optimizer.tell({"x": 0.2, "y": 0.0}, math.nan)
    run(optimizer, bowl, 10)
    assert optimizer.n_trials == 32
    assert np.all(np.isfinite([list(params.values()) for params in optimizer.ask(3)]))


def test_save_and_load(tmp_path):
    space = SPACES["conditional"]
    optimizer = make_optimizer(space)
    run(optimizer, anything, 15)
    waiting = optimizer.ask(2)
    optimizer.save(tmp_path / "optimizer")
    loaded = MondrianOptimizer.load(tmp_path / "optimizer")
    for one in (optimizer, loaded):
        one.tell(waiting[1], 3.0)
    assert run(loaded, anything, 8) == run(optimizer, anything, 8)


@pytest.mark.parametrize("surrogate", ["gp", "", "AMF", None])
def test_unknown_surrogate(surrogate):
    for make in (
        lambda s: MondrianOptimizer(SQUARE, surrogate=s),
        lambda s: MondrianSampler(surrogate=s),
    ):
        with pytest.raises(ValueError, match=r"`surrogate`.*'forest', 'amf'.*" + repr(surrogate)):
            make(surrogate)


# The sampler --------------------------------------------------------------------------------------


def make_sampler(seed=0, **settings):
    return MondrianSampler(surrogate="amf", seed=seed, **settings)


def test_sampler_on_a_conditional_space():
    studies = [optimize(make_study(make_sampler(seed)), conditional, 50) for seed in (0, 1, 2, 0)]
    for study in studies:
        assert all(is_consistent(params) for params in parameters(study))
    # Random trials find 0.7 in the median.
    assert np.median([study.best_value for study in studies[:3]]) < 0.55
    assert parameters(studies[3]) == parameters(studies[0]) != parameters(studies[1])


def test_sampler_with_running_and_failing_trials():
    study = make_study(make_sampler())

    def objective(trial):
        x, y = (trial.suggest_float(name, -1.0, 1.0) for name in "xy")
        if trial.number % 7 == 6:
            raise RuntimeError
        return math.nan if trial.number % 7 == 5 else (x - 0.3) ** 2 + (y + 0.2) ** 2

    optimize(study, objective, 30, catch=(RuntimeError,))
    space = {name: optuna.distributions.FloatDistribution(-1.0, 1.0) for name in "xy"}
    waiting = [study.ask(space) for _ in range(5)]
    assert len({tuple(trial.params.values()) for trial in waiting}) == 5
    for trial in waiting:
        study.tell(trial, trial.number)
    optimize(study, objective, 10, catch=(RuntimeError,))
    assert states(study)[TrialState.COMPLETE] > 30
    assert study.best_value < 0.05

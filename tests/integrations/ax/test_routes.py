"""Both routes through Ax's public client: spaces, constraints and objectives."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ax", reason="Ax is not installed (extra `ax`)")

import optuna
from ax.api.configs import ChoiceParameterConfig, DerivedParameterConfig, RangeParameterConfig
from ax.api.protocols import IMetric
from ax.exceptions.core import UnsupportedError, UserInputError
from ax_clients import (
    CONDITIONAL,
    MIXED,
    SQUARE,
    bowl,
    conditional,
    engine_of,
    make_client,
    mixed,
    run,
    values,
)

from mondrian_bo import Float, MondrianOptimizer, MondrianSampler, SearchSpace
from mondrian_bo.acquisitions import hypervolume
from mondrian_bo.integrations.ax.space import TranslatedSpace
from mondrian_bo.optimizer.row_optimizer import RowOptimizer

GP = "gaussian_process"

ROUTES = pytest.mark.parametrize("predictive", [True, False], ids=["predictive", "candidate"])


def run_both_routes(function, n_trials, n_common=8, **settings):
    """Run a client on the candidate route; the first trials of the other route are the same.

    After the four of the initialization, the common trials are the model's.
    """
    client = make_client(predictive=False, **settings)
    seen = run(client, function, n_trials)
    assert run(make_client(**settings), function, n_common) == seen[:n_common]
    return client, seen


# The same optimizer -------------------------------------------------------------------------------


@ROUTES
def test_suggestions_are_those_of_the_bare_optimizer(predictive):
    # Predictions make the model learn; with one first trial, both learn trial by trial anyway.
    settings = {"n_startup_trials": 1, "surrogate": "forest", "seed": 0}
    client = make_client(initialization="none", predictive=predictive, **settings)
    space = SearchSpace({name: Float(-1.0, 1.0) for name in "xy"})
    optimizer = MondrianOptimizer(space, **settings)
    expected = []
    for _ in range(10):
        params = optimizer.ask()
        optimizer.tell(params, bowl(params)["loss"])
        expected.append(params)
    assert run(client, bowl, 10) == expected


@ROUTES
def test_suggestions_are_those_of_the_optuna_sampler(predictive):
    """After the same ten trials, both frameworks go on with the same ones."""
    settings = {"n_startup_trials": 1, "surrogate": "forest"}
    study = optuna.create_study(sampler=MondrianSampler(seed=0, **settings))
    client = make_client(initialization="none", predictive=predictive, **settings)
    distributions = {name: optuna.distributions.FloatDistribution(-1.0, 1.0) for name in "xy"}
    for x, y in np.random.default_rng(0).uniform(-1.0, 1.0, (10, 2)).tolist():
        params = {"x": x, "y": y}
        loss = bowl(params)["loss"]
        study.add_trial(
            optuna.trial.create_trial(params=params, distributions=distributions, value=loss)
        )
        client.complete_trial(client.attach_trial(params), raw_data={"loss": loss})
    mine = run(client, bowl, 6)
    study.optimize(
        lambda trial: bowl({n: trial.suggest_float(n, -1.0, 1.0) for n in "xy"})["loss"],
        n_trials=6,
    )
    assert mine == [trial.params for trial in study.trials[10:]]


@ROUTES
def test_every_trial_is_told_once(predictive, monkeypatch):
    told = []
    tell_rows = RowOptimizer.tell_rows

    def record(self, rows, *arguments, **options):
        if options:
            told.append(len(rows))
        tell_rows(self, rows, *arguments, **options)

    monkeypatch.setattr(RowOptimizer, "tell_rows", record)
    client = make_client(predictive=predictive)
    run(client, bowl, 5)
    told.clear()
    run(client, bowl, 5)
    assert told == [1] * 5
    client.get_next_trials(3)
    client.get_next_trials(2)
    # Only the last trial is new; while nothing is told, nothing is learnt.
    assert told == [1] * 6


@ROUTES
def test_botorch_is_never_fitted(predictive, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a BoTorch model was fitted")

    monkeypatch.setattr("ax.generators.torch.botorch_modular.surrogate.Surrogate.fit", refuse)
    client = make_client(predictive=predictive)
    run(client, bowl, 6)
    client.get_best_parameterization()


# Spaces -------------------------------------------------------------------------------------------


def test_all_kinds_of_parameters():
    client, seen = run_both_routes(mixed, 24, n_common=12, parameters=MIXED)
    space = client._experiment.search_space
    for parameters in seen:
        space.check_membership(parameters, raise_error=True)
    types = {name: type(value) for name, value in seen[-1].items()}
    assert types == {
        "x": float,
        "n": int,
        "rate": float,
        "size": int,
        "step": float,
        "kind": str,
        "power": int,
        "flag": bool,
    }
    losses = list(values(client).values())
    assert min(losses[12:]) < 0.5 * np.median(losses[:10])


@ROUTES
def test_fixed_and_derived_parameters(predictive):
    parameters = [
        *SQUARE,
        ChoiceParameterConfig("seven", [7], "int"),
        DerivedParameterConfig("sum", "x + 2*y + 1", "float"),
    ]
    client = make_client(parameters, predictive=predictive)
    for seen in run(client, bowl, 6):
        assert seen["seven"] == 7
        assert seen["sum"] == pytest.approx(seen["x"] + 2 * seen["y"] + 1)
    for fixed in ({"sum": 0.5}, {"x": 0.5, "y": 0.1, "sum": 0.5}):
        with pytest.raises(UserInputError, match="'sum' is derived from others"):
            client.get_next_trials(1, fixed_parameters=fixed)
    known = {"x": 0.5, "y": 0.1, "sum": 1.7}
    assert list(client.get_next_trials(1, fixed_parameters=known).values()) == [
        known | {"seven": 7, "sum": pytest.approx(1.7)}
    ]


def test_disabled_parameters():
    """Parameters can be taken out in mid-experiment; both routes notice."""
    both = []
    for predictive in (True, False):
        client = make_client(MIXED, predictive=predictive)
        run(client, mixed, 6)
        client._experiment.disable_parameters_in_search_space({"kind": "b", "n": 13})
        both.append(run(client, mixed, 3))
    assert both[0] == both[1]
    assert all((seen["kind"], seen["n"]) == ("b", 13) for seen in both[0])


def test_dependent_parameters():
    """Both routes suggest the same."""
    clients = [make_client(CONDITIONAL, predictive=predictive) for predictive in (True, False)]
    both = [run(client, conditional, 12) for client in clients]
    assert both[0] == both[1]
    for seen in both[0]:
        names = {"ab", "x", "y"} if seen["family"] == "ab" else {"cd", "k", "z"}
        assert set(seen) == {"family", *names}
    families = {"ab": {"ab", "x", "y", "family"}, "cd": {"cd", "k", "z", "family"}}
    for client in clients:
        for family, names in families.items():
            (fixed,) = client.get_next_trials(1, fixed_parameters={"family": family}).values()
            assert fixed["family"] == family
            assert set(fixed) == names


def test_parameter_constraints():
    def loss(p):
        return {"loss": bowl(p)["loss"] + 0.01 * (10 - p["n"])}

    client, trials = run_both_routes(
        loss,
        18,
        parameters=[*SQUARE, RangeParameterConfig("n", (0, 10), "int")],
        constraints=["x + y <= -0.5", "n - 10*x <= 6"],
    )
    for seen in trials:
        assert seen["x"] + seen["y"] <= -0.5 + 1e-8
        assert seen["n"] - 10 * seen["x"] <= 6 + 1e-8
        client._experiment.search_space.check_membership(seen, raise_error=True)
    # The best point is on the boundary: 0.18 and a bit.
    assert min(values(client).values()) < 0.3


@ROUTES
def test_fixed_parameters(predictive):
    client = make_client(MIXED, predictive=predictive)
    run(client, mixed, 6)
    fixed = {"kind": "c", "power": 8, "x": 1.5, "rate": 0.01}
    for parameters in client.get_next_trials(3, fixed_parameters=fixed).values():
        assert {name: parameters[name] for name in fixed} == fixed
    with pytest.raises(UserInputError, match="No candidates"):
        client.get_next_trials(1, fixed_parameters={"kind": "d"})
    for name, value, message in (
        ("kind", "d", r"'kind' cannot be fixed to 'd', it is one of \['a', 'b', 'c'\]"),
        ("power", 3, r"'power' cannot be fixed to 3, it is one of \[1, 2, 4, 8\]"),
        ("x", 7.0, r"fixed parameter 'x': must be in \[-2.0, 2.0\], got 7.0"),
    ):
        with pytest.raises(UserInputError, match=message):
            client.get_next_trials(1, fixed_parameters={name: value})


STEPPED = [
    RangeParameterConfig("s", (0.0, 1.0), "float", step_size=0.1),
    RangeParameterConfig("x", (0.0, 1.0), "float"),
]


def test_constraints_on_ranges_with_steps():
    settings = {"parameters": STEPPED, "constraints": ["s + x <= 0.75"]}
    client, trials = run_both_routes(lambda p: {"loss": -2.0 * p["s"] - p["x"]}, 14, **settings)
    for seen in trials:
        assert seen["s"] + seen["x"] <= 0.75 + 1e-8
    assert min(values(client).values()) < -1.3


@ROUTES
def test_attached_trials_on_steps_are_learnt(predictive):
    """Ax's own values have rounding errors, as 0.30000000000000004."""
    client = make_client(STEPPED[:1], predictive=predictive, initialization="none")
    for s in (0.3, 0.6, 0.7, 0.1):
        index = client.attach_trial({"s": s})
        client.complete_trial(index, raw_data={"loss": s})
    seen = run(client, lambda p: {"loss": p["s"]}, 7)
    assert sorted(round(p["s"], 9) for p in seen) == [0.0, 0.2, 0.4, 0.5, 0.8, 0.9, 1.0]
    found = client.get_next_trials(1, fixed_parameters={"s": 0.3})
    assert [p["s"] for p in found.values()] == [0.1 + 0.1 + 0.1], "the value in the space"


def test_constraints_on_logits_and_uneven_choices_are_refused():
    from ax.core.parameter import ChoiceParameter, ParameterType, RangeParameter
    from ax.core.parameter_constraint import ParameterConstraint
    from ax.core.search_space import SearchSpace

    q = RangeParameter("q", ParameterType.FLOAT, 0.0, 1.0)
    logit = RangeParameter("p", ParameterType.FLOAT, 0.01, 0.99, logit_scale=True)
    uneven = ChoiceParameter("p", ParameterType.INT, [1, 2, 5], is_ordered=True)
    for parameter, message in ((logit, "logit scale"), (uneven, "equally spaced")):
        constraint = ParameterConstraint(inequality="p + q <= 1.5")
        space = SearchSpace([parameter, q], parameter_constraints=[constraint])
        with pytest.raises(UnsupportedError, match=message):
            TranslatedSpace(space)


def test_pareto_frontier_under_a_relative_constraint():
    client = make_client(objective="-a, -b", outcome_constraints=["cost <= 1.2 * baseline"])
    first = client.attach_baseline({"x": 0.0, "y": 0.0})
    client.complete_trial(first, raw_data={"a": 1.0, "b": 1.0, "cost": 1.0})

    def outcomes(p):
        return {"a": (p["x"] - 0.5) ** 2, "b": (p["x"] + 0.5) ** 2, "cost": 1.0 + 0.1 * p["y"]}

    run(client, outcomes, 6)
    assert len(client.get_pareto_frontier()) > 0


@ROUTES
def test_equality_constraints_are_refused(predictive):
    from ax.core.parameter_constraint import ParameterConstraint

    client = make_client(initialization="none", predictive=predictive)
    constraint = ParameterConstraint(equality="x + y == 1")
    client._experiment.search_space.set_parameter_constraints([constraint])
    with pytest.raises(UnsupportedError, match="Equality"):
        client.get_next_trials(1)


# Goals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["-loss", "gain"])
def test_directions(objective):
    client = make_client(objective=objective, predictive=False)

    def outcomes(p):
        return {"loss": bowl(p)["loss"]} if objective == "-loss" else {"gain": -bowl(p)["loss"]}

    seen = run(client, outcomes, 16)
    assert min(bowl(p)["loss"] for p in seen) < 0.01


def test_scalarized_objective():
    client = make_client(objective="-2*first - second", predictive=False)

    def outcomes(p):
        return {"first": (p["x"] - 0.9) ** 2, "second": (p["x"] - 0.3) ** 2 + p["y"] ** 2}

    seen = run(client, outcomes, 16)
    best = min(2 * outcomes(p)["first"] + outcomes(p)["second"] for p in seen)
    # The sum is 0.24 at (0.7, 0); the objectives alone would lead to 0.72 and 0.36.
    assert best < 0.26


def test_outcome_constraints():
    client = make_client(outcome_constraints=["cost <= 0.2"], predictive=False)

    def outcomes(p):
        return {**bowl(p), "cost": p["x"] - p["y"]}

    seen = run(client, outcomes, 24)
    feasible = [p for p in seen if outcomes(p)["cost"] <= 0.2]
    assert len([p for p in feasible if p in seen[8:]]) > 10
    # Without the constraint the best is 0, with it 0.045.
    assert min(bowl(p)["loss"] for p in feasible) < 0.1


def test_goals_of_both_routes_agree():
    def outcomes(p):
        return {**bowl(p), "cost": p["x"] - p["y"], "other": p["x"]}

    goals = {"objective": "-loss - 0.1*other", "outcome_constraints": ["cost <= 0.2"]}
    clients = [make_client(predictive=p, **goals) for p in (True, False)]
    assert run(clients[0], outcomes, 10) == run(clients[1], outcomes, 10)
    best, _, _, _ = clients[0].get_best_parameterization()
    assert outcomes(best)["cost"] <= 0.2


@ROUTES
def test_constraints_relative_to_the_status_quo(predictive):
    client = make_client(outcome_constraints=["cost <= 0.5*baseline"], predictive=predictive)
    index = client.attach_baseline({"x": 1.0, "y": 0.0})
    client.complete_trial(index, raw_data={**bowl({"x": 1.0, "y": 0.0}), "cost": 4.0})

    def outcomes(p):
        return {**bowl(p), "cost": 3.0 - 2.0 * p["y"]}

    seen = run(client, outcomes, 10)
    # Half of the baseline's 4, so y >= 0.5.
    (bound,) = engine_of(client)._goal.bounds
    assert (bound.expression, bound.sign, bound.bound) == ((("cost", 1.0),), 1.0, 2.0)
    assert max(p["y"] for p in seen[4:]) >= 0.5


def outside_baseline(predictive):
    """Return a client whose late baseline is no point of the space, and its last trials."""
    client = make_client(predictive=predictive)
    client.configure_metrics([IMetric("cost")])

    def outcomes(p):
        return {**bowl(p), "cost": 3.0 - 2.0 * p["y"]}

    run(client, outcomes, 6)
    index = client.attach_baseline({"x": 1.5, "y": 0.0})
    client.complete_trial(index, raw_data={**outcomes({"x": 1.5, "y": 0.0}), "cost": 4.0})
    client.configure_optimization(objective="-loss", outcome_constraints=["cost <= 0.5*baseline"])
    return client, run(client, outcomes, 3)


def test_baselines_may_be_late_and_outside():
    (mine, seen), (other, others) = (outside_baseline(p) for p in (True, False))
    assert seen == others
    for client in (mine, other):
        (bound,) = engine_of(client)._goal.bounds
        assert bound.bound == 2.0
        # The last trial is read with the next suggestion.
        assert engine_of(client).n_observations == 9


def test_the_goal_may_change():
    """Suggestions after the change are those that the new goal asks for on either route."""

    def outcomes(p):
        return {**bowl(p), "gain": p["x"] + p["y"]}

    both = []
    for predictive in (True, False):
        client = make_client(predictive=predictive)
        client.configure_metrics([IMetric("gain")])
        run(client, outcomes, 6)
        client.configure_optimization(objective="gain", outcome_constraints=["loss <= 5"])
        both.append(run(client, outcomes, 6))
        goal = engine_of(client)._goal
        assert goal.objectives == (((("gain", 1.0),), 1.0),)
        assert [bound.expression for bound in goal.bounds] == [(("loss", 1.0),)]
    assert both[0] == both[1]
    assert max(p["x"] + p["y"] for p in both[0]) > 1.5


def two_bowls(p):
    """Bowls around two points; all points between these are Pareto-optimal."""
    return {
        "left": (p["x"] + 0.5) ** 2 + p["y"] ** 2,
        "right": (p["x"] - 0.5) ** 2 + p["y"] ** 2,
    }


def hypervolume_of(seen, reference, feasible=lambda p: True):
    values = [list(two_bowls(p).values()) for p in seen if feasible(p)]
    return hypervolume(-np.array(values).reshape(-1, 2), -np.array(reference))


@ROUTES
def test_several_objectives_spread_along_the_front(predictive):
    client = make_client(objective="-left, -right", predictive=predictive, surrogate=GP)
    seen = run(client, two_bowls, 14)
    # Between the bowls, f1 = t**2 and f2 = (1 - t)**2.
    best = 1.0 - np.trapezoid((1.0 - np.linspace(0, 1, 1001)) ** 2, np.linspace(0, 1, 1001) ** 2)
    assert hypervolume_of(seen, (1.0, 1.0)) > 0.85 * best


@ROUTES
def test_thresholds_of_objectives_hold(predictive):
    """Only points at least as good as the thresholds count as an improvement."""
    client = make_client(
        objective="-left, -right",
        outcome_constraints=["left <= 0.2", "right <= 0.6"],
        predictive=predictive,
        surrogate=GP,
    )
    seen = run(client, two_bowls, 18)
    last = [two_bowls(p) for p in seen[10:]]
    assert sum(one["left"] <= 0.25 and one["right"] <= 0.65 for one in last) > 6


@ROUTES
def test_several_objectives_with_a_constraint(predictive):
    client = make_client(
        objective="-left, -right",
        outcome_constraints=["side <= 0"],
        predictive=predictive,
        surrogate=GP,
    )
    seen = run(client, lambda p: {**two_bowls(p), "side": 0.3 - p["y"]}, 14)
    feasible = [p["y"] >= 0.3 for p in seen[6:]]
    assert sum(feasible) >= 6
    assert hypervolume_of(seen, (1.2, 1.2), lambda p: p["y"] >= 0.3) > 0.9


@ROUTES
def test_too_many_objectives_are_refused(predictive):
    names = "abcde"
    client = make_client(objective=", ".join(f"-{one}" for one in names), predictive=predictive)
    run(client, lambda p: {one: p["x"] + i for i, one in enumerate(names)}, 4)
    with pytest.raises(UnsupportedError, match="At most 4 objectives"):
        client.get_next_trials(1)

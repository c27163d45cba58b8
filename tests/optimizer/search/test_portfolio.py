"""What a search draws from."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from mondrian_bo import Float, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import (
    ExpectedImprovement,
    LogExpectedImprovement,
    UpperConfidenceBound,
)
from mondrian_bo.optimizer.search.portfolio import Arm, Portfolio, get_portfolio


@pytest.mark.parametrize("surrogate", ["gaussian_process", "forest", "amf", "kernel"])
def test_one_acquisition_takes_the_place_of_all(surrogate):
    default = get_portfolio(surrogate, "auto")
    portfolio = get_portfolio(surrogate, "ei")
    assert [arm.acquisitions for arm in portfolio.arms] == [(ExpectedImprovement(),)] * len(
        default.arms
    )
    assert [arm.options for arm in portfolio.arms] == [arm.options for arm in default.arms]
    assert [arm.quadratic for arm in portfolio.arms] == [0.0] * len(default.arms)
    assert [arm.candidates for arm in portfolio.arms] == [1.0] * len(default.arms)
    assert not portfolio.restarts


@pytest.mark.parametrize(
    ("surrogate", "steps"),
    [
        ("gaussian_process", {"quadratic", "evolution", "plateau", "exploration"}),
        ("forest", {"quadratic"}),
        ("amf", set()),
        ("kernel", set()),
    ],
)
def test_which_defaults_restart_and_have_steps(surrogate, steps):
    """As the notes of MondrianOptimizer and of Arm say."""
    portfolio = get_portfolio(surrogate, "auto")
    assert portfolio.restarts == (surrogate in ("gaussian_process", "forest"))
    (arm,) = portfolio.arms
    kinds = ("quadratic", "evolution", "plateau", "exploration")
    assert {kind for kind in kinds if getattr(arm, kind) > 0.0} == steps
    # Half of the suggestions, and a quarter of them.
    assert arm.quadratic in (0.0, 0.5) and arm.evolution in (0.0, 0.25)
    assert arm.plateau in (0.0, 0.5)
    for one in get_portfolio(surrogate, "auto", 2).arms:
        assert not any(getattr(one, kind) for kind in kinds if kind != "exploration")
        # Whatever the surrogate, constant outcomes tell it nothing.
        assert one.exploration == 0.5
    rugged = portfolio.rugged
    assert (rugged is not None) == (surrogate == "gaussian_process")
    assert (
        rugged is None or replace(rugged, surrogate=None) == get_portfolio("forest", "auto").arms[0]
    )
    assert get_portfolio(surrogate, "ucb").rugged is None
    assert get_portfolio(surrogate, "auto", 2).rugged is None


class Spy:
    """Appends its name to a list whenever it scores."""

    def __init__(self, used, name):
        self.used, self.name = used, name

    def __call__(self, prediction, incumbent):
        self.used.append(self.name)
        return UpperConfidenceBound()(prediction, incumbent)


def counting(share, constraints, n_candidates):
    """Return an optimizer, and a list that gets the numbers of candidates that it scores."""
    counts = []

    def count(prediction, incumbent):
        counts.append(prediction.means.shape[1])
        return UpperConfidenceBound()(prediction, incumbent)

    optimizer = MondrianOptimizer(
        SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}),
        surrogate="forest",
        acquisition=Portfolio((Arm((count,), candidates=share),)),
        constraints=constraints,
        n_candidates=n_candidates,
        seed=0,
    )
    return optimizer, counts


@pytest.mark.parametrize(
    ("share", "constrained", "n_scored"), [(1.0, False, 80), (0.25, False, 20), (0.25, True, 80)]
)
def test_an_arm_scores_its_share_of_the_candidates(share, constrained, n_scored):
    optimizer, counts = counting(share, ["c"] if constrained else (), n_candidates=80)
    for i in range(12):
        counts.clear()
        params = optimizer.ask()
        optimizer.tell(params, params["x"] * i, [-1.0] if constrained else None)
    assert sum(counts) == n_scored


@pytest.mark.parametrize(
    ("n_trials", "n_constraints", "share", "n_scored"),
    [
        (200, 0, 1.0, 120),
        (201, 0, 1.0, 60),
        (201, 0, 0.25, 30),
        (201, 3, 1.0, 60),
        (201, 9, 1.0, 24),
    ],
)
def test_fewer_candidates_with_many_trials_or_models(n_trials, n_constraints, share, n_scored):
    names = [f"c{k}" for k in range(n_constraints)]
    optimizer, counts = counting(share, names, n_candidates=120)
    points = np.random.default_rng(0).random((n_trials, 2))
    constraints = -np.ones((n_trials, n_constraints)) if n_constraints else None
    places = [{"x": x, "y": y} for x, y in points.tolist()]
    optimizer.tell(places, points.sum(axis=1), constraints)
    optimizer.ask()
    assert sum(counts) == n_scored


def test_a_portfolio_of_ones_own():
    used = []
    portfolio = Portfolio(
        (Arm((Spy(used, "a"), Spy(used, "b"))), Arm((Spy(used, "c"),), power=False))
    )
    assert get_portfolio("forest", portfolio) is portfolio
    space = SearchSpace({"x": Float(0.0, 1.0)})
    optimizer = MondrianOptimizer(space, surrogate="forest", acquisition=portfolio, seed=0)
    for _ in range(30):
        params = optimizer.ask()
        optimizer.tell(params, (params["x"] - 0.3) ** 2)
    assert set(used) == {"a", "b", "c"}
    assert optimizer.best[1] < 1e-3


def test_other_acquisitions_while_trials_are_running():
    used = []
    portfolio = Portfolio((Arm((Spy(used, "alone"),), while_running=(Spy(used, "running"),)),))
    space = SearchSpace({"x": Float(0.0, 1.0)})
    optimizer = MondrianOptimizer(space, surrogate="forest", acquisition=portfolio, seed=0)
    optimizer.tell([{"x": x} for x in np.linspace(0.0, 1.0, 12)], np.arange(12.0))
    for i in range(20):
        optimizer.ask()
        used.append("next")
        if i == 0:
            assert set(used) == {"alone", "next"}
    words = [set(one.split()) for one in " ".join(used).split("next")[1:-1]]
    assert [len(one) for one in words] == [1] * 19
    assert 4 < sum("running" in one for one in words) < 15


def test_running_trials_count_as_first_ones():
    used = []
    optimizer = MondrianOptimizer(
        SearchSpace({"x": Float(0.0, 1.0)}),
        surrogate="forest",
        acquisition=Portfolio((Arm((Spy(used, "model"),)),)),
        n_startup_trials=5,
        seed=0,
    )
    optimizer.tell([{"x": 0.1}, {"x": 0.9}], [1.0, 2.0])
    optimizer.ask(3)
    assert used == []
    optimizer.ask()
    assert set(used) == {"model"}


@pytest.mark.parametrize(
    ("n_constraints", "slope", "used"),
    [(0, 0.0, "none"), (3, 0.0, "few"), (4, 0.0, "many"), (4, 1.0, "few")],
)
def test_other_acquisitions_under_many_constraints(n_constraints, slope, used):
    """One that is exactly linear has no model, and does not count."""
    found = []
    arm = Arm(
        (Spy(found, "none"),),
        constrained=(Spy(found, "few"),),
        many_constrained=(Spy(found, "many"),),
    )
    space = SearchSpace({"x": Float(0.0, 1.0)})
    optimizer = MondrianOptimizer(
        space,
        surrogate="forest",
        acquisition=Portfolio((arm,)),
        constraints=[f"c{k}" for k in range(n_constraints)],
        seed=0,
    )
    for i in range(12):
        params = optimizer.ask()
        values = [-1.0] * n_constraints
        values[:1] = [slope * params["x"] - 1.0] * min(n_constraints, 1)
        optimizer.tell(params, params["x"] * i, values or None)
    assert set(found) == {used}


def asked(n_trials=16, **settings):
    space = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    optimizer = MondrianOptimizer(space, seed=0, **settings)
    for _ in range(n_trials):
        params = optimizer.ask()
        optimizer.tell(params, (params["x"] - 0.3) ** 2 + params["y"])
    return optimizer, optimizer.ask()


def test_the_model_does_not_depend_on_the_form_of_the_acquisition():
    _, alone = asked(acquisition=LogExpectedImprovement())
    _, in_a_portfolio = asked(acquisition=Portfolio((Arm((LogExpectedImprovement(),)),)))
    assert alone == in_a_portfolio


@pytest.mark.parametrize(
    ("surrogate", "accepted"),
    [
        (
            "gaussian_process",
            "n_estimators', 'block_size', 'prior', 'scale_strength', 'restart_growth', "
            "'input_warping",
        ),
        ("forest", "n_estimators', 'posterior', 'branch_off', 'hyperparameters"),
        ("kernel", "n_estimators"),
    ],
)
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("rugged", [True, False])
def test_options_that_the_surrogate_does_not_know(surrogate, accepted, own, rugged):
    arm = Arm((E,), options={"depth": 3}, surrogate=surrogate if own else None)
    portfolio = Portfolio((Arm((E,)),), rugged=arm) if rugged else Portfolio((arm,))
    message = rf"Option 'depth' of an arm is unknown to surrogate '{surrogate}'.*\['{accepted}'\]"
    with pytest.raises(ValueError, match=message):
        MondrianOptimizer(
            SearchSpace({"x": Float(0.0, 1.0)}),
            surrogate="amf" if own else surrogate,
            acquisition=portfolio,
        )


def test_models_of_several_objectives_are_also_fitted_anew_and_have_no_warps():
    options = {"restart_growth": 1.5, "input_warping": False}
    for n_objectives in (2, 3):
        for acquisition in ("auto", "ei"):
            arms = get_portfolio("gaussian_process", acquisition, n_objectives).arms
            assert all(arm.options == options for arm in arms)
        assert not any(arm.options for arm in get_portfolio("forest", "auto", n_objectives).arms)
    assert not any(arm.options for arm in get_portfolio("gaussian_process", "auto").arms)


def test_arms_hold_acquisitions_and_portfolios_hold_arms():
    bound = UpperConfidenceBound()
    with pytest.raises(ValueError, match="`acquisitions` of an arm must hold at least one"):
        Arm(())
    with pytest.raises(TypeError, match=r"`while_running` of an arm must hold acqu.*, got 'ucb'"):
        Arm((bound,), while_running=("ucb",))
    with pytest.raises(ValueError, match="`arms` of a portfolio must hold at least one"):
        Portfolio(())
    with pytest.raises(TypeError, match="`arms` of a portfolio must hold arms, got Upper"):
        Portfolio((bound,))


E = UpperConfidenceBound()
SPACE = SearchSpace({"x": Float(0.0, 1.0)})


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Arm(E), TypeError, "`acquisitions` of an arm must be a sequence, got Upper"),
        (lambda: Arm((UpperConfidenceBound,)), TypeError, "must hold acquisitions, got <class"),
        (lambda: Arm((E,), constrained=E), TypeError, "`constrained` of an arm must be a sequence"),
        (lambda: Arm((E,), while_running=None), TypeError, "`while_running` of an arm must be a"),
        (lambda: Arm((E,), quadratic="x"), TypeError, "`quadratic` must be a number, got 'x'"),
        (lambda: Arm((E,), power="no"), TypeError, "`power` must be True or False, got 'no'"),
        (lambda: Arm((E,), options=["a"]), TypeError, "`options` of an arm must be a mapping"),
        (lambda: Portfolio(Arm((E,))), TypeError, "`arms` of a portfolio must be a sequence"),
        (lambda: Portfolio((Arm((E,)),), restarts="no"), TypeError, "`restarts` must be True or"),
        (
            lambda: Portfolio((Arm((E,)),), rugged=E),
            TypeError,
            "`rugged` of a portfolio must be an",
        ),
        (lambda: Arm((E,), surrogate="gp"), ValueError, "`surrogate` must be one of .*, got 'gp'"),
    ],
)
def test_arms_and_portfolios_name_wrong_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"block_size": 0}, ValueError, "`block_size` must be at least 1, got 0"),
        ({"block_size": 2.5}, TypeError, "`block_size` must be an integer, got 2.5"),
        ({"n_estimators": 0}, ValueError, "`n_estimators` must be at least 1, got 0"),
        ({"prior": 3}, TypeError, "`prior` must be a Prior, got 3"),
        ({"scale_strength": -1.0}, ValueError, "`scale_strength` must be above 0, got -1.0"),
        ({"restart_growth": math.nan}, ValueError, "`restart_growth` must be above 1, got nan"),
    ],
)
def test_values_of_options_are_checked_at_once(options, error, message):
    with pytest.raises(error, match=message):
        MondrianOptimizer(
            SearchSpace({"x": Float(0.0, 1.0)}),
            acquisition=Portfolio((Arm((E,), options=options),)),
        )


@pytest.mark.parametrize(
    ("scores", "error"),
    [
        (lambda means: np.zeros(2), ValueError),
        (lambda means: means, ValueError),
        (lambda means: np.full(means.shape[1], np.nan), ValueError),
        (lambda means: None, TypeError),
        (lambda means: ["a"] * means.shape[1], TypeError),
    ],
)
def test_an_acquisition_of_ones_own_returns_a_score_for_each_candidate(scores, error):
    def acquisition(prediction, incumbent):
        return scores(prediction.means)

    optimizer = MondrianOptimizer(SPACE, acquisition=acquisition, n_startup_trials=1, seed=0)
    optimizer.tell({"x": 0.5}, 1.0)
    with pytest.raises(error, match=r"acquisition at .* must return"):
        optimizer.ask()


def test_options_take_the_place_of_defaults():
    options = {"n_estimators": 3}
    portfolio = Portfolio((Arm((UpperConfidenceBound(),), options=options),))
    _, by_option = asked(surrogate="forest", acquisition=portfolio)
    _, by_argument = asked(surrogate="forest", acquisition="ucb", n_estimators=3)
    assert by_option == by_argument


def test_predictions_mix_those_of_all_arms():
    acquisitions = (UpperConfidenceBound(),)
    arms = (Arm(acquisitions), Arm(acquisitions, power=False))
    optimizer, _ = asked(surrogate="forest", acquisition=Portfolio(arms))
    rows = np.random.default_rng(0).random((5, 2))
    mean, std = (one[:, 0] for one in optimizer.predict_rows(rows))
    models = [model for model, _ in optimizer._search.whole.arms]
    parts = [model.outcome_moments(rows) for model in models]
    means, stds = (np.array([part[k] for part in parts]) for k in (0, 1))
    assert not np.allclose(means[0], means[1])
    assert np.allclose(mean, -means.mean(axis=0))
    assert np.allclose(std, np.sqrt((stds**2).mean(axis=0) + means.var(axis=0)))

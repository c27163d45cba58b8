"""Earlier studies: their encoding, their weights, and the search that starts from them."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.optimize import minimize

from mondrian_bo import Categorical, Condition, Float, Int, MondrianOptimizer, SearchSpace
from mondrian_bo.optimizer.earlier_studies.earlier_mean import (
    EarlierMean,
    EarlierModel,
    SmoothEarlierMean,
)
from mondrian_bo.optimizer.earlier_studies.earlier_trials import EarlierTrials, encode_earlier
from mondrian_bo.surrogates.base import Columns
from mondrian_bo.surrogates.registry import get_surrogate

SQUARE = SearchSpace({"x": Float(-1.0, 1.0), "y": Float(0.0, 10.0)})
TREE = SearchSpace(
    {
        "kind": Categorical(("line", "net")),
        "rate": Float(1e-4, 1.0, log=True),
        "layers": Int(1, 4, condition=Condition("kind", ("net",))),
    }
)


def bowl(params):
    return (params["x"] - 0.3) ** 2 + ((params["y"] - 4.0) / 10.0) ** 2


def told(space, function, n_trials=40, seed=0):
    """Return a random earlier study."""
    rng = np.random.default_rng(seed)
    params = [space.from_unit(row) for row in space.sample(n_trials, rng)]
    return params, [function(one) for one in params]


def searched(n_trials, function=bowl, space=SQUARE, **settings):
    """Return an optimizer after some trials, and their values."""
    optimizer = MondrianOptimizer(space, **{"seed": 1, **settings})
    values = []
    for _ in range(n_trials):
        params = optimizer.ask()
        values.append(function(params))
        optimizer.tell(params, values[-1])
    return optimizer, values


def weights(optimizer):
    """Return the weights of earlier studies in a single-objective search."""
    return optimizer.earlier_weights


def test_without_earlier_studies_nothing_changes():
    _, plain = searched(14)
    for nothing in (None, []):
        assert searched(14, warm_start=nothing)[1] == plain


def test_a_search_starts_at_the_best_earlier_trial_and_uses_the_rest():
    params, values = told(SQUARE, bowl)
    shifted = [5.0 * value - 70.0 for value in values]
    optimizer, found = searched(10, warm_start=[(params, shifted)])
    best = params[int(np.argmin(values))]
    assert found[0] == pytest.approx(bowl(best))
    assert weights(optimizer)[0] > 0.7
    # The second trial is the middle, as the first one of a cold search; its others are random.
    assert found[1] == pytest.approx(bowl({"x": 0.0, "y": 5.0}))
    _, cold = searched(10, n_startup_trials=10)
    assert min(found) < 0.1 * min(cold)
    # Far from all trials, the prediction follows the earlier study.
    far, near = {"x": -1.0, "y": 10.0}, {"x": 0.3, "y": 4.0}
    predicted = optimizer.predict([far, near])[0]
    assert predicted[0] > predicted[1] + 0.3


def test_of_two_studies_the_first_trials_are_the_best_of_each():
    earlier = [told(SQUARE, bowl), told(SQUARE, lambda p: p["x"] + p["y"], seed=3)]
    optimizer, asked = MondrianOptimizer(SQUARE, seed=1, warm_start=earlier), []
    for _ in range(3):
        asked.append(optimizer.ask())
        optimizer.tell(asked[-1], bowl(asked[-1]))
    for params, (former, values) in zip(asked[::2], earlier, strict=True):
        assert params == pytest.approx(former[int(np.argmin(values))])


@pytest.mark.parametrize(
    "function", [lambda p: -bowl(p), lambda p: math.sin(40.0 * p["x"] + 11.0 * p["y"])]
)
def test_an_unhelpful_study_is_forgotten_within_20_trials(function):
    earlier = [told(SQUARE, function), told(SQUARE, bowl, seed=3)]
    for seed in range(3):
        optimizer, _ = searched(20, seed=seed, warm_start=earlier)
        # Without noise, even a tiny weight may be significant.
        assert weights(optimizer)[0] < 0.02
        assert weights(optimizer)[1] > 0.5
    optimizer, _ = searched(20, n_startup_trials=10, warm_start=earlier)
    assert weights(optimizer)[0] == 0.0


def test_the_model_without_weights_is_the_one_without_earlier_studies():
    params, values = told(SQUARE, bowl, 20, seed=5)
    cold = MondrianOptimizer(SQUARE, seed=1)
    warm = MondrianOptimizer(SQUARE, seed=1, warm_start=[told(SQUARE, lambda p: -bowl(p))])
    for one in (cold, warm):
        one.tell(params, values)
    places = told(SQUARE, bowl, 30, seed=6)[0]
    for first, second in zip(cold.predict(places), warm.predict(places), strict=True):
        np.testing.assert_array_equal(first, second)


def surrogate(name, earlier, n_choices=(0, 0)):
    n_choices = np.array(n_choices)
    models = [EarlierModel(one, n_choices, np.random.SeedSequence(2)) for one in earlier]
    inner = get_surrogate(name)(Columns(n_choices, False), np.random.SeedSequence(1))
    kind = SmoothEarlierMean if name == "gaussian_process" else EarlierMean
    return kind(inner, models), models


def test_weights_minimise_the_penalised_squares():
    rng = np.random.default_rng(0)
    places = rng.random((9, 2))
    studies = [
        EarlierTrials(name, rows := rng.random((30, 2)), function(rows))
        for name, function in {
            "helpful": lambda r: r[:, 0] - r[:, 1],
            "half": lambda r: r[:, 0] + 0.2 * r[:, 1] ** 2,
            "negated": lambda r: r[:, 1] - r[:, 0],
        }.items()
    ]
    values = places[:, 0] - places[:, 1] + 0.3 * rng.standard_normal(9)
    values = (values - values.mean()) / values.std()
    model, earlier = surrogate("gaussian_process", studies)
    model.learn(places, values)
    predicted = np.array([one.means(places) for one in earlier]).T
    centred = predicted - predicted.mean(axis=0)
    inputs = centred / np.sqrt(((centred**2).sum(axis=0) + 3.0) / 12.0)

    def loss(one):
        return ((values - inputs @ one) ** 2).sum() + 3.0 * ((one - 0.25) ** 2).sum()

    best = minimize(loss, np.ones(3), bounds=[(0.0, None)] * 3).x
    np.testing.assert_allclose(model.weights, best, atol=1e-4)
    assert model.weights[0] > 0.2 and model.weights[2] == 0.0


def test_a_weight_is_significant_by_generalised_least_squares():
    # Trials of a search: most of them are next to each other, where values are alike.
    rng = np.random.default_rng(3)
    rows = np.concatenate([rng.random((6, 2)), 0.5 + 0.02 * rng.random((10, 2))])
    study = EarlierTrials("study", places := rng.random((30, 2)), places[:, 0] - places[:, 1])
    model, (earlier,) = surrogate("gaussian_process", [study])
    values = np.sin(3.0 * rows[:, 0]) + 0.3 * rng.standard_normal(16)
    model.learn(rows, values)
    model.predict(rows[:1])  # fits the hyper-parameters
    inputs = earlier.means(rows)[:, None]

    lower = model._surrogate._forest.covariance.of_targets(rows)
    precision = np.linalg.inv(lower + np.tril(lower, -1).T)
    design = np.column_stack([np.ones(16), inputs])
    information = design.T @ precision @ design
    best = np.linalg.solve(information, design.T @ precision @ values)
    residuals = values - design @ best
    variance = residuals @ precision @ residuals / 14.0
    score = best[1] / math.sqrt(variance * np.linalg.inv(information)[1, 1])

    assert model._scores(inputs, values)[0] == pytest.approx(score, rel=1e-6)
    # As independent observations, the trials would say more.
    assert abs(score) < abs(EarlierMean._scores(model, inputs, values)[0])


def test_there_may_be_more_earlier_studies_than_trials():
    rng = np.random.default_rng(0)
    studies = [EarlierTrials("study", p := rng.random((9, 2)), p[:, 0] * k) for k in range(1, 13)]
    model, _ = surrogate("gaussian_process", studies)
    rows = rng.random((12, 2))
    model.learn(rows, rows[:, 0])
    model.set_targets(rows[:, 0].copy())
    inputs = np.array([one.means(rows) for one in model._earlier]).T
    independent = EarlierMean._scores(model, inputs, rows[:, 0])
    np.testing.assert_array_equal(model._scores(inputs, rows[:, 0]), independent)


def test_the_influence_of_earlier_studies_fades():
    rng = np.random.default_rng(0)
    study = EarlierTrials("study", places := rng.random((30, 2)), places[:, 0])
    model, (earlier,) = surrogate("gaussian_process", [study])
    rows = rng.random((40, 2))
    model.learn(rows[:10], rows[:10, 0])
    slopes = []
    for n in range(10, 41, 10):
        if n > 10:
            model.learn(rows[n - 10 : n], rows[n - 10 : n, 0])
            model.set_targets(rows[:n, 0].copy())
        unit = earlier.means(np.array([[1.0, 0.5], [0.0, 0.5]]))
        mean = model._mean(np.array([[1.0, 0.5], [0.0, 0.5]]))
        slopes.append(float((mean[0] - mean[1]) / (unit[0] - unit[1])) / model.weights[0])
    # The slope is the weight over the spread of the predictions, times (10 / n)^2.
    spreads = []
    for n in range(10, 41, 10):
        predicted = earlier.means(rows[:n])
        spreads.append(np.sqrt((((predicted - predicted.mean()) ** 2).sum() + 3.0) / (n + 3.0)))
    fading = [(10.0 / n) ** 2 for n in range(10, 41, 10)]
    np.testing.assert_allclose(slopes, np.array(fading) / spreads)


@pytest.mark.parametrize("name", ["gaussian_process", "forest"])
def test_predictions_draws_and_gradients_agree(name):
    rng = np.random.default_rng(1)
    rows = rng.random((40, 2))
    study = EarlierTrials("study", rows, np.sin(5.0 * rows[:, 0]) + rows[:, 1])
    model, _ = surrogate(name, [study])
    places = rng.random((12, 2))
    values = 2.0 * np.sin(5.0 * places[:, 0]) + places[:, 1] + 1.0
    model.learn(places[:7], values[:7])
    model.learn(places[7:], values[7:])
    model.set_targets(values)
    assert model.weights[0] > 0.5
    means, _ = model.predict(places)
    if name == "gaussian_process":
        np.testing.assert_allclose(means[0], values, atol=0.02)
        drawn = model.draw(np.random.default_rng(0))(places)
        np.testing.assert_allclose(drawn, values, atol=0.05)
        joint = model.draw_at(places, 50, np.random.default_rng(0))
        np.testing.assert_allclose(joint.mean(axis=0), values, atol=0.05)
        new = rng.random((5, 2))
        gradients = model.gradients(new)
        step = 1e-5
        for j in range(2):
            moved = [model.predict(new + sign * step * np.eye(2)[j]) for sign in (1.0, -1.0)]
            for k, analytic in ((0, gradients.mean_gradients), (1, gradients.std_gradients)):
                numeric = (moved[0][k] - moved[1][k]) / (2.0 * step)
                np.testing.assert_allclose(analytic[:, :, j], numeric, atol=1e-3)
        np.testing.assert_allclose(gradients.means, model.predict(new)[0])
        assert (model.predict_targets(new)[1] > gradients.stds).all()
    before = model.predict(places)
    far = np.array([[0.5, 3.0]])
    with model.extended(far, np.array([9.0])):
        inside = model.predict(far)[0].mean()
    assert inside > model.predict(far)[0].mean() + 1.0
    for one, other in zip(before, model.predict(places), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_value_that_is_learnt_for_a_while_is_predicted():
    """In units of the values, though the process has that of the residuals."""
    rng = np.random.default_rng(1)
    study = EarlierTrials("study", rows := rng.random((40, 2)), rows[:, 0])
    model, _ = surrogate("gaussian_process", [study])
    places = rng.random((12, 2))
    model.learn(places, 3.0 * places[:, 0] + np.sin(7.0 * places[:, 1]))
    assert not 0.9 < model._unit < 1.1
    new = np.array([[0.5, 3.0]])
    for value in (-2.0, 4.0):
        with model.extended(new, np.array([value])):
            assert model.predict(new)[0].mean() == pytest.approx(value, abs=0.05)


def test_trials_are_encoded_as_far_as_they_fit():
    params = [
        {"kind": "line", "rate": 0.01, "depth": 3},
        {"kind": "net", "rate": 10.0, "layers": 5},  # just outside
        {"kind": "tree", "rate": 0.1},  # unknown choice
        {"kind": "net", "rate": 1e9, "layers": 2},  # far outside
        {"kind": "net", "rate": 0.1, "layers": 2},  # NaN
        {"kind": "net", "rate": -1.0, "layers": 2},  # no logarithm
    ]
    values = [1.0, -math.inf, 3.0, 4.0, math.nan, 6.0]
    trials, conflicts = encode_earlier("study", TREE, params, values)
    assert conflicts == []
    np.testing.assert_array_equal(trials.values, [1.0, -math.inf])
    np.testing.assert_allclose(trials.rows, [[0.0, 0.5, np.nan], [1.0, 1.25, 1.125]])


def test_trials_that_are_left_out_do_not_move_the_others_feasibility():
    params = [{"kind": "line", "rate": rate} for rate in (0.1, 1e9, 0.2, 0.3)]
    is_feasible = np.array([True, True, False, True])
    trials, _ = encode_earlier("study", TREE, params, [1.0, 2.0, 3.0, 4.0], is_feasible)
    assert dict(zip(trials.values, trials.is_feasible, strict=True)) == {1: True, 3: False, 4: True}


def test_many_trials_are_thinned_to_both_ends_and_a_spread():
    params, values = told(SQUARE, bowl, 1000)
    trials, _ = encode_earlier("study", SQUARE, params, values)
    assert len(trials.values) == 200
    ordered = np.sort(values)
    assert set(ordered[:50]) | set(ordered[-50:]) <= set(trials.values)
    assert np.median(trials.values) == pytest.approx(np.median(values), rel=0.1)


def test_parameters_may_be_missing_added_and_conditional():
    def function(params):
        deep = 0.1 * (params["layers"] - 3) ** 2 if "layers" in params else 0.5
        return (math.log10(params["rate"]) + 2.0) ** 2 + deep

    params, values = told(TREE, function)
    renamed = [{"rate": one["rate"], "new": 1.0} for one in params]
    for earlier in (params, renamed):
        optimizer, found = searched(10, function, TREE, warm_start=[(earlier, values)])
        assert weights(optimizer)[0] > 0.3
        assert found[0] < 0.7
        assert pickle.loads(pickle.dumps(optimizer)).ask() == optimizer.ask()


def test_a_pickle_of_an_earlier_version_goes_on():
    optimizer, _ = searched(10, bowl, SQUARE, warm_start=[told(SQUARE, bowl)])
    twin = pickle.loads(pickle.dumps(optimizer))
    for model in optimizer._search.models:
        surrogate = model.surrogate
        surrogate._values = surrogate.__dict__.pop("_targets")
    assert pickle.loads(pickle.dumps(optimizer)).ask() == twin.ask()


def test_a_conflicting_parameter_is_ignored_with_a_warning():
    params = [{"x": "big", "y": float(y)} for y in range(10)]
    with pytest.warns(UserWarning, match=r"'x' of the earlier study 'warm_start\[0\]'.*'big'"):
        optimizer = MondrianOptimizer(SQUARE, seed=0, warm_start=[(params, list(range(10)))])
    assert optimizer.ask()["y"] == 0.0


@pytest.mark.parametrize(
    ("study", "error", "message"),
    [
        (3, TypeError, "pair of params and values"),
        (([{"x": 0.0}], [1.0, 2.0]), ValueError, "one mapping of parameters for each value"),
        (([{"z": 0.0}], [1.0]), ValueError, r"no trial.*\['x', 'y'\]"),
        (([{"x": 0.0}], [math.nan]), ValueError, "no trial"),
        (EarlierTrials("a", np.zeros((2, 3)), np.zeros(2)), ValueError, "row of 2 entries"),
    ],
)
def test_bad_input_is_refused(study, error, message):
    with pytest.raises(error, match=message):
        MondrianOptimizer(SQUARE, warm_start=[study])


@pytest.mark.parametrize("studies", [5, {"x": 0.0, "y": 0.0}, "study"])
def test_studies_in_no_list_are_refused(studies):
    with pytest.raises(TypeError, match="`warm_start` must be a list of studies"):
        MondrianOptimizer(SQUARE, warm_start=studies)


def test_several_objectives_are_refused():
    with pytest.raises(ValueError, match="single objective"):
        MondrianOptimizer(
            SQUARE, directions=["minimize"] * 2, warm_start=[([{"x": 0.0, "y": 0.0}], [1.0])]
        )


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_other_models_and_valid_points(direction):
    sign = 1.0 if direction == "minimize" else -1.0
    params, values = told(SQUARE, lambda p: sign * bowl(p))
    optimizer, found = searched(
        9,
        lambda p: sign * bowl(p),
        surrogate="forest",
        direction=direction,
        is_valid=lambda p: p["x"] <= 0.0,
        warm_start=[(params, values)],
    )
    valid = [value for one, value in zip(params, values, strict=True) if one["x"] <= 0.0]
    assert sign * found[0] == min(sign * value for value in valid)
    assert optimizer.ask()["x"] <= 0.0

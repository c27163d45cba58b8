"""The forest as the optimizer's surrogate: choices, absences, pending rows, drawn functions."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo import Float, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import UpperConfidenceBound
from mondrian_bo.optimizer import Arm, Portfolio
from mondrian_bo.surrogates import MondrianForestRegressor
from mondrian_bo.surrogates.base import Columns
from mondrian_bo.surrogates.mondrian_forest import model as forest_model
from mondrian_bo.surrogates.mondrian_forest.surrogate import ForestSurrogate

FLOATS = np.zeros(3, dtype=np.int64)
MIXED = np.array([0, 5, 0, 3])
kinds = pytest.mark.parametrize("n_choices", [FLOATS, MIXED], ids=["floats", "mixed"])
posteriors = pytest.mark.parametrize("posterior", ["empirical", "exact"])


def surrogate(n_choices, seed=0, may_be_absent=False, **settings):
    columns = Columns(n_choices, may_be_absent)
    return ForestSurrogate(columns, np.random.SeedSequence(seed), **settings)


def rows(n_choices, n, seed):
    drawn = np.random.default_rng(seed).random((n, len(n_choices)))
    return np.where(n_choices > 0, np.floor(drawn * np.maximum(n_choices, 1)), drawn)


def values(n, seed=7):
    return np.random.default_rng(seed).normal(size=n)


@kinds
def test_reproduces_what_it_learnt(n_choices):
    some = rows(n_choices, 40, seed=1)
    one = surrogate(n_choices, n_estimators=7, posterior="empirical")
    one.learn(some[:25], values(40)[:25])
    for i in range(25, 40):
        one.learn(some[i : i + 1], values(40)[i : i + 1])
    means, stds = one.predict(some)
    assert means.shape == stds.shape == (7, 40)
    # Distinct rows end in leaves of their own, and the function has no noise.
    assert np.allclose(means, values(40))
    assert np.allclose(stds, 0.0, atol=1e-6)
    means, stds = one.predict(rows(n_choices, 50, seed=2))
    assert np.isfinite(means).all()
    assert (stds >= 0.0).all()
    assert (stds > 0.0).mean() > 0.9


@kinds
def test_learning_does_not_touch_or_keep_its_arguments(n_choices):
    some, targets = rows(n_choices, 20, seed=1), values(20)
    before = some.copy(), targets.copy()
    one = surrogate(n_choices)
    one.learn(some, targets)
    assert np.array_equal(some, before[0])
    assert np.array_equal(targets, before[1])
    expected = one.predict(before[0])
    some[:], targets[:] = 0.0, 0.0
    assert np.array_equal(one.predict(before[0]), expected)


@kinds
def test_seeds(n_choices):
    def predicted(seed):
        one = surrogate(n_choices, seed=seed)
        one.learn(rows(n_choices, 30, seed=1), values(30))
        return np.array(one.predict(rows(n_choices, 10, seed=2)))

    assert np.array_equal(predicted(3), predicted(3))
    assert not np.array_equal(predicted(3), predicted(4))


@kinds
@posteriors
def test_set_values_is_learning_with_these_values(n_choices, posterior):
    some, probes = rows(n_choices, 30, seed=1), rows(n_choices, 20, seed=2)
    # Learnt hyper-parameters are those of the former values.
    options = {"posterior": posterior, "hyperparameters": "paper"}
    changed, direct = (surrogate(n_choices, **options) for _ in range(2))
    changed.learn(some, values(30, seed=3))
    changed.set_targets(values(30, seed=4))
    direct.learn(some, values(30, seed=4))
    for one, other in zip(changed.predict(probes), direct.predict(probes), strict=True):
        assert np.allclose(one, other, atol=1e-9)


@posteriors
def test_choices_are_exchangeable(posterior):
    """Nothing in the answers about unseen choices tells them apart, whatever their indices are."""
    n_choices = np.array([7])
    seen = np.array([[2.0], [5.0], [3.0], [2.0]])
    differences = []
    for seed in range(40):
        one = surrogate(n_choices, seed=seed, n_estimators=20, posterior=posterior)
        one.learn(seen, np.array([1.0, -1.0, 0.2, 1.1]))
        means, stds = one.predict(np.array([[0.0], [1.0], [4.0], [6.0]]))
        differences.append([m - m.mean() for m in (means.mean(axis=0), stds.mean(axis=0))])
    differences = np.array(differences)
    z = differences.mean(axis=0) / (differences.std(axis=0) / np.sqrt(40))
    # Eight statistics at about 1e-4 each.
    assert np.abs(z).max() < 4.0
    # The seen choices are told apart.
    means, _ = one.predict(seen[:3])
    assert (means[:, 0] > means[:, 2] + 0.1).all()
    assert (means[:, 2] > means[:, 1] + 0.1).all()


def test_learns_across_choices_what_they_share():
    """The same slope at every choice, each with its own level."""
    rng = np.random.default_rng(0)
    some = np.column_stack([rng.random(150), rng.integers(3, size=150)])
    level = np.array([0.0, 5.0, -5.0])
    one = surrogate(np.array([0, 3]), n_estimators=30)
    one.learn(some, some[:, 0] + level[some[:, 1].astype(int)])
    probes = np.column_stack([np.repeat([0.1, 0.9], 3), np.tile(np.arange(3.0), 2)])
    means = one.predict(probes)[0].mean(axis=0)
    assert np.allclose(means, probes[:, 0] + np.tile(level, 2), atol=0.7)


def test_absent_parameters_do_not_vary():
    one = surrogate(MIXED, may_be_absent=True, posterior="empirical")
    some = rows(MIXED, 60, seed=1)
    some[::2, 0] = np.nan
    some[::3, 3] = np.nan
    one.learn(some, values(60))
    means, stds = one.predict(some)
    assert np.allclose(means, values(60))
    assert np.allclose(stds, 0.0, atol=1e-6)
    again = one.predict(some)
    assert np.array_equal(again[0], means)
    # All absent at once is one point.
    empty = np.full((4, 4), np.nan)
    means, _ = one.predict(empty)
    assert (means == means[:, :1]).all()


def test_absence_is_told_apart_from_every_value():
    rng = np.random.default_rng(2)
    x = rng.random((80, 1))
    x[::2] = np.nan
    one = surrogate(np.zeros(1, dtype=np.int64), may_be_absent=True, n_estimators=50)
    one.learn(x, np.where(np.isnan(x[:, 0]), 1.0, -1.0) + 0.01 * values(80))
    means, _ = one.predict(np.array([[np.nan], [0.1], [0.5], [0.9]]))
    assert means[:, 0] == pytest.approx(1.0, abs=0.1)
    assert (means[:, 1:].mean(axis=0) < -0.5).all()


@kinds
@posteriors
def test_extended_is_as_if_learnt_and_undone(n_choices, posterior):
    some, more = rows(n_choices, 20, seed=1), rows(n_choices, 6, seed=2)
    probes = np.concatenate([some, more, rows(n_choices, 30, seed=3)])
    extended, learnt, untouched = (surrogate(n_choices, posterior=posterior) for _ in range(3))
    for one in (extended, learnt, untouched):
        one.learn(some, values(20))
    before = extended.predict(probes)
    with extended.extended(more, values(6, seed=8)):
        within = extended.predict(probes)
    learnt.learn(more, values(6, seed=8))
    assert not np.array_equal(within[0], before[0])
    for one, other in zip(within, learnt.predict(probes), strict=True):
        assert np.allclose(one, other, atol=1e-9)
    assert np.array_equal(extended.predict(probes), before)
    # Nor does the future remember it.
    for one in (extended, untouched):
        one.learn(more[:3], values(3, seed=9))
    assert np.array_equal(extended.predict(probes), untouched.predict(probes))


def test_extended_is_undone_after_an_error():
    one = surrogate(MIXED)
    some = rows(MIXED, 20, seed=1)
    one.learn(some, values(20))
    before = one.predict(some)
    with (
        pytest.raises(ZeroDivisionError),
        one.extended(rows(MIXED, 4, seed=2), values(4)),
    ):
        raise ZeroDivisionError
    assert np.array_equal(one.predict(some), before)


@kinds
@posteriors
def test_draw_is_one_function(n_choices, posterior):
    one = surrogate(n_choices, posterior=posterior)
    some = rows(n_choices, 30, seed=1)
    one.learn(some, values(30))
    probes = rows(n_choices, 50, seed=2)
    function = one.draw(np.random.default_rng(5))
    drawn = function(probes)
    assert drawn.shape == (50,)
    order = np.random.default_rng(6).permutation(50)
    assert np.allclose(function(probes[order]), drawn[order], atol=1e-12)
    singly = np.array([function(row[None])[0] for row in probes])
    assert np.allclose(singly, drawn, atol=1e-12)
    # Equal rows have equal values, and other draws are other functions.
    assert np.ptp(function(np.repeat(probes[:1], 5, axis=0))) == 0.0
    assert np.array_equal(one.draw(np.random.default_rng(5))(probes), drawn)
    assert not np.allclose(one.draw(np.random.default_rng(6))(probes), drawn)


def test_draws_scatter_as_the_prediction_does():
    """Mean and deviation over many draws are those of the mixture over the trees."""
    one = surrogate(MIXED, posterior="exact", n_estimators=5)
    one.learn(rows(MIXED, 30, seed=1), values(30))
    probes = rows(MIXED, 8, seed=2)
    rng = np.random.default_rng(3)
    draws = np.array([one.draw(rng)(probes) for _ in range(2000)])
    means, stds = one.predict(probes)
    mean = means.mean(axis=0)
    std = np.sqrt((stds**2 + means**2).mean(axis=0) - mean**2)
    assert np.abs(draws.mean(axis=0) - mean).max() < 5.0 * std.max() / np.sqrt(2000)
    assert np.allclose(draws.std(axis=0), std, rtol=0.15)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hyperparameters": "paper", "branch_off": "bridge"},
        {"hyperparameters": "marginal_likelihood"},
        {"posterior": "empirical"},
    ],
)
def test_is_the_regressor_without_noise(options):
    some, probes = rows(FLOATS, 40, seed=1), rows(FLOATS, 25, seed=2)
    one = surrogate(FLOATS, seed=0, **options)
    one.learn(some, values(40))
    same = MondrianForestRegressor(bounds=[[0.0, 1.0]] * 3, random_state=0, **options)
    # The trees of a regressor are drawn from another seed.
    same.fit(some, values(40))
    same.model_ = one._model
    mean, std = same.predict(probes, return_std=True)
    means, stds = one.predict(probes)
    assert np.allclose(means.mean(axis=0), mean)
    noise = one._model.noise_std()
    assert noise > 0.0
    assert np.allclose((stds**2).mean(axis=0) + means.var(axis=0) + noise**2, std**2)


def test_noise_is_learnt():
    rng = np.random.default_rng(0)
    some, probes = rows(FLOATS, 150, seed=1), rows(FLOATS, 100, seed=2)
    targets = some[:, 0] + 0.5 * rng.normal(size=150)
    errors = []
    for options in ({}, {"hyperparameters": "paper"}, {"posterior": "empirical"}):
        one = surrogate(FLOATS, **options)
        one.learn(some, targets)
        errors.append(np.sqrt(np.mean((one.predict(probes)[0].mean(axis=0) - probes[:, 0]) ** 2)))
        if not options:
            assert one._model.noise_std() == pytest.approx(0.5, rel=0.3)
    assert errors[0] < 0.8 * min(errors[1:])


def test_hyperparameters_are_learnt_whenever_the_rows_have_doubled(monkeypatch):
    sizes = []
    learn = forest_model.learn_hyperparameters

    def spy(forest, *others):
        sizes.append(forest.n_points)
        return learn(forest, *others)

    monkeypatch.setattr(forest_model, "learn_hyperparameters", spy)
    one = surrogate(FLOATS, n_estimators=2)
    some, targets = rows(FLOATS, 400, seed=1), values(400)
    one.learn(some[:10], targets[:10])
    for i in range(10, 400):
        one.learn(some[i : i + 1], targets[i : i + 1])
        one.set_targets(targets[: i + 1])
    assert sizes == [10, 20, 40, 80, 160, 320]


@pytest.mark.parametrize("option", ["posterior", "branch_off", "hyperparameters"])
def test_words_that_are_no_options(option):
    with pytest.raises(ValueError, match=f"`{option}` must be one of .*, got 'guess'"):
        surrogate(FLOATS, **{option: "guess"})


def test_options_of_an_arm_change_the_search_and_are_saved(tmp_path):
    space = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})

    def search(options):
        portfolio = Portfolio((Arm((UpperConfidenceBound(),), options=options),))
        optimizer = MondrianOptimizer(space, surrogate="forest", acquisition=portfolio, seed=0)
        for _ in range(25):
            params = optimizer.ask()
            optimizer.tell(params, (params["x"] - 0.3) ** 2 + params["y"])
        optimizer.save(tmp_path / "optimizer.npz")
        loaded = MondrianOptimizer.load(tmp_path / "optimizer.npz")
        suggestions = [optimizer.ask() for _ in range(3)]
        assert [loaded.ask() for _ in range(3)] == suggestions
        return suggestions

    papers = {"posterior": "empirical"}
    learnt = {"posterior": "exact", "hyperparameters": "leave_one_out"}
    assert search({}) == search(learnt) != search(papers)
    assert search(papers) == search({**papers, "hyperparameters": "paper"})

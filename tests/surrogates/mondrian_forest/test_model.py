"""The forest as a model: scales, hyper-parameters of Appendix B, prediction, fantasies."""

import math

import numpy as np
import pytest
from trees.dense import DenseTree, moments, probes
from trees.oracles import assert_same_bits, check_forest, snapshot

from mondrian_bo.surrogates.mondrian_forest.evidence import log_mean_exp
from mondrian_bo.surrogates.mondrian_forest.model import (
    HierarchicalGaussianModel,
    appendix_b,
)
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.trees.predict import EMPIRICAL, PAPER, REMAINING

RULES = {
    ("exact", "remaining"): REMAINING,
    ("exact", "paper"): PAPER,
    ("empirical", "remaining"): EMPIRICAL,
}
BOUNDS = (np.array([-1.0, 0.0]), np.array([1.0, 5.0]))


def make_data(n, seed=0, n_views=1):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_views, n, 2)) * [0.3, 2.0] + [0.0, 2.0]
    if n > 6:
        points[:, n // 2 : n // 2 + 3] = points[:, :3]
    return points, np.sin(3.0 * points[0, :, 0]) + 0.3 * rng.normal(size=n)


def make_model(n_trees=3, seed=0, **options):
    return HierarchicalGaussianModel(Ensemble(n_trees, 2, np.random.SeedSequence(seed)), **options)


def learnt(points, targets, portions, **options):
    model = make_model(**options)
    start = 0
    for end in [*portions, len(targets)]:
        model.learn(points[:, start:end].copy(), targets[start:end].copy())
        start = end
    return model


def check_against_dense(model, rule, tolerance=1e-8):
    """Predictions and likelihoods are those of a dense Gaussian with the model's parameters."""
    forest = model.forest
    points = probes(forest.points[0], 8, np.random.default_rng(1))
    means, variances = model.predict(points[None])
    likelihoods = model.log_marginal_likelihood()
    for t in range(forest.n_trees):
        dense = DenseTree(forest, t, mean_prior=model.mean_prior, gamma_1=model.gamma_1)
        assert likelihoods[t] == pytest.approx(dense.log_likelihood(), rel=tolerance)
        for i, x in enumerate(points):
            mean, variance = moments(dense.components(x, model.rates, rule))
            assert means[t, i] == pytest.approx(mean, rel=tolerance, abs=tolerance)
            assert variances[t, i] == pytest.approx(variance, rel=tolerance, abs=tolerance)


def test_appendix_b():
    for n in (2, 3, 10, 999, 1000, 1001, 50_000):
        for dimension in (1.0, 7.0):
            found = appendix_b(n, dimension)
            assert found.gamma_2 == pytest.approx(dimension / (20.0 * math.log2(n)))
            assert found.noise == pytest.approx(1.0 / min(2000, 2 * n))
    # One point has no logarithm to divide by.
    assert appendix_b(1, 1.0).gamma_2 == pytest.approx(1.0 / 20.0)


@pytest.mark.parametrize("lifetime", [np.inf, 3.0])
@pytest.mark.parametrize("portions", [[], [1], [10, 30]])
def test_prior_matches_the_targets(portions, lifetime):
    points, targets = make_data(40)
    model = learnt(points, targets, portions, lifetime=lifetime)
    assert model.mean_prior == pytest.approx(targets.mean())
    # The variance of a target under the prior, from the definition of the phi_j.
    gamma_2, noise = model.forest.hyperparameters
    spent = 1.0 / (1.0 + math.exp(-gamma_2 * lifetime)) - 0.5
    assert model.gamma_1 * (spent + noise) == pytest.approx(targets.var())
    assert model.noise_std() == pytest.approx(math.sqrt(model.gamma_1 * noise))
    # And so it is predicted far from the data.
    far = np.array([[[1e5, 0.0], [0.0, -1e9]]])
    means, variances = model.predict(far)
    assert np.allclose(means, targets.mean(), rtol=0.0, atol=1e-12)
    assert np.allclose(variances, targets.var(), rtol=1e-12)
    mixture = model.mixture(far)
    assert np.allclose(mixture.cdf(np.full(2, targets.mean())), 0.5)
    one_sigma = targets.mean() + targets.std()
    assert np.allclose(mixture.cdf(np.full(2, one_sigma)), 0.5 + 0.5 * math.erf(math.sqrt(0.5)))


@pytest.mark.parametrize(("names", "rule"), RULES.items())
@pytest.mark.parametrize("bounds", [None, BOUNDS])
@pytest.mark.parametrize(("min_samples_split", "lifetime"), [(2, np.inf), (5, 2.0)])
def test_predictions_after_a_batch(names, rule, bounds, min_samples_split, lifetime):
    points, targets = make_data(30)
    model = learnt(
        points,
        targets,
        [],
        posterior=names[0],
        branch_off=names[1],
        bounds=bounds,
        min_samples_split=min_samples_split,
        lifetime=lifetime,
    )
    check_forest(model.forest, model.rates)
    check_against_dense(model, rule)


@pytest.mark.parametrize(("names", "rule"), RULES.items())
@pytest.mark.parametrize("min_samples_split", [2, 5])
def test_predictions_after_a_long_run(names, rule, min_samples_split):
    points, targets = make_data(140, seed=3)
    model = learnt(
        points,
        targets,
        range(1, 140),
        n_trees=2,
        posterior=names[0],
        branch_off=names[1],
        min_samples_split=min_samples_split,
    )
    # Hyper-parameters are those of the last doubling.
    assert model.forest.hyperparameters == appendix_b(128, 2.0)
    check_against_dense(model, rule)


def test_hyperparameters_follow_each_doubling():
    points, targets = make_data(100)
    model = make_model()
    model.learn(points[:, :6].copy(), targets[:6].copy())
    for n in range(7, 101):
        model.learn(points[:, n - 1 : n], targets[n - 1 : n])
        last = 6 * 2 ** int(math.log2(n / 6))
        assert model.forest.hyperparameters == appendix_b(last, 2.0)


def test_targets_with_a_large_offset():
    points, targets = make_data(300, seed=4)
    shifted = 1e6 + 0.01 * targets
    model = learnt(points, shifted, range(1, 300), n_trees=2)
    small = learnt(points, shifted - 1e6, range(1, 300), n_trees=2)
    queries = probes(points[0], 30, np.random.default_rng(0))[None]
    means, variances = model.predict(queries)
    expected, spread = small.predict(queries)
    assert np.allclose(means - 1e6, expected, rtol=0.0, atol=1e-8)
    assert np.allclose(variances, spread, rtol=1e-5)
    assert np.allclose(model.log_marginal_likelihood(), small.log_marginal_likelihood(), rtol=1e-6)


@pytest.mark.parametrize("n_views", [1, 3])
@pytest.mark.parametrize("bounds", [None, BOUNDS])
@pytest.mark.parametrize("min_samples_split", [2, 6])
def test_portions_do_not_matter(bounds, min_samples_split, n_views):
    # The ranges of the data grow and hyper-parameters are refreshed half way through portions.
    points, targets = make_data(90, n_views=n_views)
    options = {"bounds": bounds, "min_samples_split": min_samples_split}
    reference = learnt(points, targets, range(5, 90), **options)
    for portions in ([5], [5, 6, 50, 88], [5, 9, 10, 11, 41], [5, 30, 30, 30]):
        model = learnt(points, targets, portions, **options)
        assert_same_bits(snapshot(model.forest), snapshot(reference.forest))
        assert np.array_equal(model.rates, reference.rates)
        assert model.gamma_1 == reference.gamma_1


def test_weights_follow_the_range():
    points, targets = make_data(20)
    factors = np.array([1.0, 0.25])
    model = learnt(points, targets, [3, 10], feature_weights=factors)
    assert np.allclose(model.rates, factors / np.ptp(points[0], axis=0))
    fixed = learnt(points, targets, [3, 10], feature_weights=factors, bounds=BOUNDS)
    assert np.allclose(fixed.rates, factors / [2.0, 5.0])
    # gamma_2 counts dimensions as their splits count.
    assert model.forest.hyperparameters == appendix_b(12, 1.25)
    # A constant dimension keeps its unit and is not counted.
    points[:, :, 0] = 4.0
    constant = learnt(points, targets, [], feature_weights=factors)
    assert np.allclose(constant.rates, [1.0, 0.25 / np.ptp(points[0, :, 1])])
    assert constant.forest.hyperparameters == appendix_b(20, 0.25)


@pytest.mark.parametrize("portions", [[], [7]])
def test_new_targets(portions):
    # Trees do not depend on targets: it is as if the new ones had been learnt.
    points, targets = make_data(40)
    other = np.random.default_rng(9).normal(size=40)
    model = learnt(points, targets, portions)
    model.set_targets(other)
    replica = learnt(points, other, portions)
    queries = probes(points[0], 20, np.random.default_rng(0))[None]
    assert np.allclose(model.predict(queries), replica.predict(queries), rtol=1e-11, atol=1e-12)
    likelihoods = model.log_marginal_likelihood()
    assert np.allclose(likelihoods, replica.log_marginal_likelihood(), rtol=1e-11)
    check_against_dense(model, REMAINING)


@pytest.mark.parametrize("min_samples_split", [2, 5])
@pytest.mark.parametrize("n_new", [1, 7])
def test_fantasies(n_new, min_samples_split):
    points, targets = make_data(25)
    options = {"bounds": BOUNDS, "min_samples_split": min_samples_split}
    model, replica = (learnt(points, targets, [15], **options) for _ in range(2))
    new = np.concatenate([points[:, :1], make_data(n_new, seed=8)[0]], axis=1)[:, :n_new]
    new_targets = np.full(n_new, 3.0)
    queries = probes(points[0], 20, np.random.default_rng(0))[None]
    before = snapshot(model.forest)
    was = model.predict(queries)
    with model.extended(new, new_targets):
        replica.forest.extend(new, new_targets, replica.rates[None])
        assert model.mean_prior == pytest.approx(np.append(targets, new_targets).mean())
        assert np.array_equal(model.predict(queries), replica.predict(queries))
        if n_new == 1:  # with 30 points the hyper-parameters would be refreshed
            really = learnt(points, targets, [15], **options)
            really.learn(new, new_targets)
            assert np.array_equal(model.predict(queries), really.predict(queries))
        assert model.n_points == 25 + n_new
        assert not np.array_equal(model.predict(queries), was)
    assert_same_bits(snapshot(model.forest), before)
    assert np.array_equal(model.predict(queries), was)


def test_fantasies_outside_the_range_leave_the_scales():
    points, targets = make_data(25)
    model = learnt(points, targets, [])
    rates, before = model.rates, snapshot(model.forest)
    with model.extended(np.full((1, 2, 2), 100.0), np.zeros(2)):
        assert np.array_equal(model.rates, rates)
        check_forest(model.forest, rates)
    assert np.array_equal(model.rates, rates)
    assert_same_bits(snapshot(model.forest), before)


@pytest.mark.parametrize("names", RULES)
def test_mixture_has_the_moments_of_the_prediction(names):
    points, targets = make_data(40)
    model = learnt(points, targets, [20], posterior=names[0], branch_off=names[1])
    queries = probes(points[0], 25, np.random.default_rng(2))[None]
    means, variances = model.predict(queries)
    mean = means.mean(axis=0)
    variance = (variances + means**2).mean(axis=0) - mean**2
    grid = np.linspace(-12.0, 12.0, 6_001)
    mixture = model.mixture(queries)
    assert len(mixture) == queries.shape[1]
    width = grid[1] - grid[0]
    # E Y = int (1 - F) - int F; E Y^2 from the same integrals, by the midpoint rule.
    upper = np.zeros(len(mixture))
    second = np.zeros(len(mixture))
    for y in grid[:-1] + 0.5 * width:
        below = mixture.cdf(np.full(len(mixture), y))
        tail = 1.0 - below if y > 0.0 else -below
        upper += tail * width
        second += 2.0 * y * tail * width
    assert np.allclose(upper, mean, atol=width)
    assert np.allclose(second - upper**2, variance, atol=4.0 * width)


def test_draws_are_functions_of_the_forest():
    points, targets = make_data(40)
    model = learnt(points, targets, [20], n_trees=4)
    queries = probes(points[0], 6, np.random.default_rng(2))[None]
    rng = np.random.default_rng(5)
    n_draws = 6000
    functions = [model.draw(rng) for _ in range(n_draws)]
    found = np.stack([function(queries) for function in functions])
    # Calls continue the same function.
    for i in (0, 17, 99):
        again = np.concatenate([functions[i](queries[:, :9]), functions[i](queries[:, 9:])])
        assert np.array_equal(again, found[i])
    means, variances = model.predict(queries)
    mean = means.mean(axis=0)
    noise = model.noise_std() ** 2
    variance = (variances - noise + (means - mean) ** 2).mean(axis=0)
    error = np.sqrt(variance / n_draws)
    assert np.all(np.abs(found.mean(axis=0) - mean) < 4.5 * error)
    fourth = ((found - mean) ** 4).mean(axis=0)
    error = np.sqrt((fourth - variance**2) / n_draws)
    assert np.all(np.abs(((found - mean) ** 2).mean(axis=0) - variance) < 4.5 * error)


def test_log_mean_exp():
    values = np.array([-3.0, 0.5, 1.0])
    assert log_mean_exp(values) == pytest.approx(np.log(np.mean(np.exp(values))))
    assert log_mean_exp(values - 5000.0) == pytest.approx(log_mean_exp(values) - 5000.0)

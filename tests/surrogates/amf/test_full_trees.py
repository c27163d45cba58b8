"""Trees with a largest number of nodes, once they have it."""

import numpy as np
import pytest
from amf_streams import make_data, probes

from mondrian_bo.surrogates import AMFRegressor


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("step", ["corollary", "adaptive"])
@pytest.mark.parametrize("max_nodes", [7, 15])
def test_full_trees_whose_targets_widen(max_nodes, step, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.random((80, 2)), rng.standard_t(1.5, size=80)
    forests = []
    for size in (80, 7, 1):
        forest = AMFRegressor(2, max_nodes=max_nodes, step=step, random_state=seed)
        for start in range(0, 80, size):
            forest.partial_fit(X[start : start + size], y[start : start + size])
        forests.append(forest)
    whole, *others = (np.stack(forest.predict(X, return_std=True)) for forest in forests)
    for other in others:
        np.testing.assert_allclose(other, whole, rtol=1e-9)


@pytest.mark.parametrize("max_nodes", [21, 61])
@pytest.mark.parametrize("factor", [3.0, 1.0 + 1e-7, 1e20])
def test_full_trees_do_not_depend_on_units(max_nodes, factor):
    """Of pairs whose splits gain the same up to rounding, the first pair drawn goes."""
    X, y = make_data(150)
    options = {"max_nodes": max_nodes, "random_state": 0}
    one = AMFRegressor(3, **options).partial_fit(X, y).predict(probes(X))
    weights = np.full(len(X), factor)
    weighted = AMFRegressor(3, **options).partial_fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(weighted.predict(probes(X)), one, rtol=0.0, atol=1e-9)
    scaled = AMFRegressor(3, **options).partial_fit(X, factor * y)
    np.testing.assert_allclose(scaled.predict(probes(X)) / factor, one, rtol=0.0, atol=1e-9)
    moved = AMFRegressor(3, **options).partial_fit(X, y + 10.0)
    np.testing.assert_allclose(moved.predict(probes(X)) - 10.0, one, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"step": "adaptive"}, {"online_to_batch": True}])
@pytest.mark.parametrize("max_nodes", [1, 2])
def test_trees_of_one_node_know_how_far_targets_differ(max_nodes, options):
    """They keep one sample and learn all: their forecast is a mean with the variance of targets."""
    X, y = make_data(60)
    model = AMFRegressor(2, max_nodes=max_nodes, random_state=0, **options)
    # The prior variance is the square of half the range, as long as one sample is learnt.
    model.partial_fit(X, 100.0 * y)
    assert model.model_.predictor.n_points == 1 < model.model_.predictor.n_learnt
    mean, std = model.predict(X[:3], return_std=True)
    quantiles = model.predict_quantiles(X[:3], [0.16, 0.84])
    known = 100.0 * y[: model.model_.predictor.n_learnt]
    np.testing.assert_allclose(mean, known.mean(), atol=0.3 * known.std())
    np.testing.assert_allclose(std, known.std(), rtol=0.3)
    np.testing.assert_allclose(np.diff(quantiles)[:, 0], 2.0 * known.std(), rtol=0.3)

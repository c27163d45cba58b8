"""Derivatives of scores with respect to candidates."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo.acquisitions.score_gradients import gradient_of, moved_moments


@pytest.mark.parametrize("n_components", [1, 3])
def test_derivatives_follow_the_chain_rule(n_components):
    rng = np.random.default_rng(n_components)
    means = rng.normal(size=(n_components, 4))
    stds = rng.uniform(0.5, 2.0, size=(n_components, 4))
    mean_gradients, std_gradients = rng.normal(size=(2, n_components, 4, 2))
    moved_means, moved_stds = moved_moments(means, stds)
    assert moved_means.shape == moved_stds.shape == (n_components, (2 * n_components + 1) * 4)
    assert np.array_equal(moved_means[:, :4], means)
    assert np.array_equal(moved_stds[:, :4], stds)
    scores = (moved_means**2 - np.log(moved_stds)).sum(axis=0)
    expected = (2.0 * means[..., None] * mean_gradients - std_gradients / stds[..., None]).sum(
        axis=0
    )
    found = gradient_of(scores, stds, mean_gradients, std_gradients)
    assert np.allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_no_way_up_from_minus_infinity():
    stds, gradients = np.ones((1, 2)), np.ones((1, 2, 3))
    scores = np.array([-np.inf, 0.0, -np.inf, 1e-5, -np.inf, 1e-5])
    gradient = gradient_of(scores, stds, gradients, gradients)
    assert np.array_equal(gradient[0], np.zeros(3))
    assert np.allclose(gradient[1], 2.0)

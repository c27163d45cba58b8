"""Leave-one-out moments, against processes without the point."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo.surrogates.gaussian_process import left_out
from mondrian_bo.surrogates.gaussian_process.fit import (
    OPTIMIZER_PRIOR,
    fit_hyperparameters,
    initial_estimates,
)


@pytest.mark.parametrize("categorical", [[False, False], [False, True]])
def test_are_the_moments_of_a_process_without_the_point(categorical):
    rng = np.random.default_rng(2)
    categorical = np.array(categorical)
    points = rng.random((25, 2))
    points[:, categorical] = rng.integers(3, size=(25, categorical.sum()))
    targets = np.sin(5.0 * points[:, 0]) + points[:, 1] + 0.05 * rng.normal(size=25)
    targets = (targets - targets.mean()) / targets.std()
    means, stds = left_out.left_out_moments(points, targets, categorical, OPTIMIZER_PRIOR)
    initial = initial_estimates(categorical, OPTIMIZER_PRIOR)
    covariance = fit_hyperparameters([(points, targets)], initial, OPTIMIZER_PRIOR, 30)[
        0
    ].covariance
    lower = np.tril(covariance.of_targets(points))
    full = lower + np.tril(lower, -1).T + OPTIMIZER_PRIOR.mean_variance
    for i in range(25):
        others = np.delete(np.arange(25), i)
        weights = np.linalg.solve(full[np.ix_(others, others)], full[others, i])
        assert means[i] == pytest.approx(weights @ targets[others], abs=1e-7)
        variance = full[i, i] - weights @ full[others, i]
        assert stds[i] == pytest.approx(np.sqrt(variance), rel=1e-4)

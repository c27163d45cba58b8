"""Quantiles of predictions: against draws from the mixture, and their order."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo import Float, SearchSpace
from mondrian_bo.optimizer.row_optimizer import RowOptimizer

SPACE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
LEVELS = np.array([0.05, 0.5, 0.95])


@pytest.mark.parametrize("surrogate", ["gaussian_process", "forest"])
@pytest.mark.parametrize("directions", [("minimize",), ("maximize", "minimize")])
def test_quantiles_of_draws(surrogate: str, directions: tuple[str, ...]) -> None:
    """The share of draws from the mixture below a quantile is its level."""
    rng = np.random.default_rng(0)
    rows = rng.random((30, 2))
    values = np.exp(3.0 * rows) @ np.ones((2, len(directions))) + rng.normal(size=(30, 1))
    optimizer = RowOptimizer(SPACE, directions=directions, surrogate=surrogate, seed=0)  # type: ignore[arg-type]
    assert np.isnan(optimizer.predict_quantiles(rows, LEVELS)).all()
    optimizer.tell_rows(rows, values)
    at = rng.random((5, 2))
    found = optimizer.predict_quantiles(at, LEVELS)
    assert found.shape == (5, len(directions), 3)
    assert (np.diff(found, axis=2) >= 0.0).all()
    for k, direction in enumerate(directions):
        draws = []
        for model, _ in optimizer._search.whole.arms:
            own = model.models[k]
            means, stds = own.predict(at)
            for mean, std in zip(means, stds, strict=True):
                sample = mean + std * rng.normal(size=(4000 // len(means), 5))
                draws.append(own.transform.inverse(sample))
        values_drawn = np.concatenate(draws) * (1.0 if direction == "maximize" else -1.0)
        # Trees may be certain: the distribution has atoms. Five standard errors of 4,000 draws.
        below = (values_drawn[:, :, None] < found[:, k] - 1e-6).mean(axis=0)
        upto = (values_drawn[:, :, None] <= found[:, k] + 1e-6).mean(axis=0)
        assert (below <= LEVELS + 0.04).all() and (upto >= LEVELS - 0.04).all()

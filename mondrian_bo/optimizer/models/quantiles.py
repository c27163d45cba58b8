"""Quantiles of predictions in the units of an outcome."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.shared.array_types import FloatArray

_LEVELS = 512
"""Points of each component's distribution, our choice: levels of mixtures are right to 1e-3."""

_ROWS = 256
"""Rows in one block, which limits the memory."""


def outcome_quantiles(
    models: Sequence[OutcomeModel], rows: FloatArray, levels: FloatArray
) -> FloatArray:
    """Return quantiles of the equally weighted mixture of models, shape (m, q).

    Each model is a mixture of Gaussians on the scale of its own transform of values.

    Parameters
    ----------
    models : sequence of OutcomeModel
        Models of one outcome, at least one.
    rows : float64 array of shape (m, d)
        Where to predict.
    levels : float64 array of shape (q,)
        Probabilities in (0, 1).
    """
    parts = [(model.transform, *model.predict(rows)) for model in models]
    n_components = sum(len(means) for _, means, _ in parts)
    # A single component's quantiles are exact: they are monotone under a transform.
    points = levels if n_components == 1 else (np.arange(_LEVELS) + 0.5) / _LEVELS
    scores = ndtri(points)[:, None, None]
    result = np.empty((len(rows), len(levels)))
    for start in range(0, len(rows), _ROWS):
        block = slice(start, start + _ROWS)
        # Models weigh the same, and so do their components.
        values = [
            transform.inverse(means[:, block] + stds[:, block] * scores)
            for transform, means, stds in parts
        ]
        if n_components == 1:
            result[block] = values[0][:, 0].T
            continue
        pooled = np.concatenate([one.reshape(-1, one.shape[-1]) for one in values])
        result[block] = np.quantile(pooled, levels, axis=0).T
    return result

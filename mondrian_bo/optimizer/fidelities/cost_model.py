"""What a trial costs, depending on its fidelity and its other parameters."""

from __future__ import annotations

import numpy as np

from mondrian_bo.optimizer.fidelities.fidelity import Fidelity
from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.shared.growing_array import GrowingArray

_COST_NOISE = 0.1
"""Standard deviation of the logarithm of a cost, our choice: 10 % of the cost."""

_COST_PRIOR = (100.0, 0.5, 0.1, 1.0)
"""Prior standard deviations of the coefficients of the logarithm of the cost: constant, logarithm
of the fidelity, its square, other columns. Our choice: costs are roughly proportional."""


class CostModel:
    """A regression of the logarithm of the cost of trials.

    The logarithm is linear in the numeric columns and the choices, and quadratic in the logarithm
    of the proportional cost (:meth:`Fidelity.log_costs`). Coefficients have a normal prior, in
    which the cost is proportional: without data, it is.

    Parameters
    ----------
    fidelity : Fidelity
        The fidelity.
    n_choices : int64 array of shape (d,)
        Number of choices of categorical columns, 0 for numeric ones.
    """

    def __init__(self, fidelity: Fidelity, n_choices: IntArray) -> None:
        self._fidelity = fidelity
        self._n_choices = n_choices
        self._rows = GrowingArray(len(n_choices))
        self._costs = GrowingArray()
        self._fitted: tuple[int, FloatArray] | None = None

    def __len__(self) -> int:
        """Return the number of known costs."""
        return len(self._costs)

    def tell(self, rows: FloatArray, costs: FloatArray) -> None:
        """Learn costs, shape (m,), of rows (m, d); those that are not positive are not known."""
        known = np.isfinite(costs) & (costs > 0.0)
        self._rows.extend(rows[known])
        self._costs.extend(costs[known])

    def restore(self, n_costs: int) -> None:
        """Forget all but the first costs."""
        self._rows.shorten(n_costs)
        self._costs.shorten(n_costs)
        self._fitted = None

    def log_ratios(self, rows: FloatArray) -> FloatArray:
        """Return the logarithm of costs divided by those of the same rows at the target, (m,)."""
        full = self._fidelity.at(rows, self._fidelity.unit)
        return np.asarray((self._features(rows) - self._features(full)) @ self._coefficients)

    def predict(self, rows: FloatArray) -> FloatArray:
        """Return the predicted (median) costs of rows, shape (m,)."""
        return np.asarray(np.exp(self._features(rows) @ self._coefficients))

    @property
    def _coefficients(self) -> FloatArray:
        n = len(self._costs)
        if self._fitted is None or self._fitted[0] != n:
            features = self._features(self._rows.rows)
            k = features.shape[1]
            constant, slope, curvature, others = _COST_PRIOR
            deviations = np.full(k, others)
            deviations[:3] = constant, slope, curvature
            mean = np.zeros(k)
            mean[1] = 1.0
            precision = np.diag(1.0 / deviations**2) + features.T @ features / _COST_NOISE**2
            residuals = np.log(self._costs.rows) - features @ mean
            found = mean + np.linalg.solve(precision, features.T @ residuals / _COST_NOISE**2)
            self._fitted = n, found
        return self._fitted[1]

    def _features(self, rows: FloatArray) -> FloatArray:
        size = self._fidelity.log_costs(rows)
        columns = [np.ones(len(rows)), size, size * size]
        for j, n_choices in enumerate(self._n_choices.tolist()):
            if j == self._fidelity.column:
                continue
            entries = rows[:, j]
            if n_choices == 0:
                columns.append(np.where(np.isnan(entries), 0.0, entries - 0.5))
            else:
                columns.extend((entries == choice).astype(float) for choice in range(n_choices))
        return np.column_stack(columns)

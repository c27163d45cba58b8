"""A step of stochastic gradient descent on the weights of Mondrian cells (Balog2016, 4.2.2)."""

from __future__ import annotations

import math
from typing import Literal

from numba import njit

from mondrian_bo.trees.compiling import INNER

Loss = Literal["hinge", "log_loss", "squared_error", "epsilon_insensitive"]
"""The loss of a sample, see :func:`mondrian_bo.surrogates.sgd_lifetime_path`."""

HINGE, LOG_LOSS, SQUARED_ERROR, EPSILON_INSENSITIVE = 0, 1, 2, 3
"""Numbers of the losses in compiled functions."""

LOSSES: dict[Loss, int] = {
    "hinge": HINGE,
    "log_loss": LOG_LOSS,
    "squared_error": SQUARED_ERROR,
    "epsilon_insensitive": EPSILON_INSENSITIVE,
}
"""The number of each loss."""

SMALLEST_SCALE = 1e-9
"""Factor of the weights below which it is multiplied into them, far above the smallest floats."""


@njit(**INNER)
def take_step(vector, scale, cells, point, target, settings, rate, decay):  # type: ignore[no-untyped-def]
    """Take a step at a point, O(M), and return the new scale.

    Parameters
    ----------
    vector : float64 array of shape (n_cells,)
        v: the weights of the cells are scale * v. Is changed in the cells of the point.
    scale : float
        The scale, by which all weights shrink at once: positive. Where it becomes small, it is
        multiplied into `vector`, O(n_cells), and is 1 again.
    cells : int array of shape (n, M)
        The cells of all points.
    point : int
        The point.
    target : float
        Its target.
    settings : DescentSettings or OnlineSettings
        Their loss and epsilon are used.
    rate : float
        Length of the step along the negative gradient of the loss.
    decay : float
        Share of the weights that the regularisation takes away; all of them at 1.
    """
    n_trees = cells.shape[1]
    root = math.sqrt(n_trees)
    total = 0.0
    for t in range(n_trees):
        total += vector[cells[point, t]]
    gradient = _negative_gradient(settings.loss, scale * total / root, target, settings.epsilon)
    scale *= 1.0 - decay
    if scale < SMALLEST_SCALE:  # 0 or negative after a decay of 1 or more
        for c in range(len(vector)):
            vector[c] *= scale
        scale = 1.0
    if gradient != 0.0:
        change = rate * gradient / (scale * root)
        for t in range(n_trees):
            vector[cells[point, t]] += change
    return scale


@njit(**INNER)
def _negative_gradient(loss, prediction, target, epsilon):  # type: ignore[no-untyped-def]
    """Return minus the derivative of a loss with respect to the prediction."""
    if loss == HINGE:
        return target if target * prediction < 1.0 else 0.0
    if loss == LOG_LOSS:
        return target / (1.0 + math.exp(target * prediction))
    error = target - prediction
    if loss == SQUARED_ERROR:
        return error
    if abs(error) <= epsilon:
        return 0.0
    return 1.0 if error > 0.0 else -1.0

"""Functional analysis of variance of partitions into boxes, exactly.

The function is ``sum_m c_m 1(x in box_m)``, where boxes of several trees overlap. The variance of
the part that depends on a set S of inputs is a double sum over the boxes:
``sum_mn c_m c_n prod_{j in S} |m_j and n_j| prod_{j not in S} |m_j| |n_j|``, minus the squared mean
and the parts of smaller sets.

References
----------
F. Hutter, H. Hoos and K. Leyton-Brown (2014), An efficient approach for assessing hyperparameter
importance (the case of a single tree, where boxes do not overlap).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mondrian_bo.importance.axes import Axis, Mask
from mondrian_bo.importance.decomposition import Decomposition, products_after
from mondrian_bo.shared.array_types import FloatArray

_BLOCK = 256
"""Boxes in one block of the double sum: it limits the memory."""


class Boxes(NamedTuple):
    """A sum of indicators of M boxes.

    Attributes
    ----------
    weights : float64 array of shape (M,)
        The value in each box.
    lower, upper : float64 arrays of shape (M, d)
        Corners, ``lower < x <= upper``; they count for continuous inputs.
    factors : list of d float64 arrays of shape (a_j, M)
        Whether the nodes of each axis are inside, 1 or 0.
    """

    weights: FloatArray
    lower: FloatArray
    upper: FloatArray
    factors: list[FloatArray]


def partition_anova(
    axes: list[Axis], patterns: Sequence[Sequence[Mask]], boxes: Boxes
) -> Decomposition:
    """Return all parts of the variance of a function that is constant in boxes.

    Parameters
    ----------
    axes : list of d Axis
        Nodes of the inputs. Those of continuous inputs only serve the curves.
    patterns : sequence of P sequences of d masks
        See :func:`mondrian_bo.importance.axes.activity_patterns`.
    boxes : Boxes
        The function.

    Returns
    -------
    Decomposition
        The parts, exact up to rounding.

    Notes
    -----
    Takes O((M P d)^2) time.
    """
    d = len(axes)
    sides = [_Side(axis, boxes, patterns, j) for j, axis in enumerate(axes)]
    weights = np.tile(boxes.weights, len(patterns))
    after = products_after([side.size for side in sides])
    alone, others = [], {}
    before = weights
    for j in range(d):
        alone.append(before * after[j + 1])
        between = before
        for k in range(j + 1, d):
            others[j, k] = between * after[k + 1]
            between = between * sides[k].size
        before = before * sides[j].size
    mean = float(before.sum())
    curves = [side.factors @ own for side, own in zip(sides, alone, strict=True)]
    total, main, pairs = 0.0, np.zeros(d), np.zeros((d, d))
    for start in range(0, len(weights), _BLOCK):
        block = slice(start, start + _BLOCK)
        product = np.outer(weights[block], weights)
        common = [side.common(block) for side in sides]
        for j in range(d):
            product *= common[j]
            main[j] += alone[j][block] @ common[j] @ alone[j]
            for k in range(j + 1, d):
                own = others[j, k]
                pairs[j, k] += own[block] @ (common[j] * common[k]) @ own
        total += float(product.sum())
    main = np.maximum(main - mean**2, 0.0)
    pairs = np.triu(pairs - mean**2 - main[:, None] - main, 1)
    pairs = np.maximum(pairs + pairs.T, 0.0)
    parts = float(main.sum() + 0.5 * pairs.sum())
    # Rounding must not make the parts more than the whole.
    return Decomposition(mean, max(total - mean**2, parts), main, pairs, axes, curves)


class _Side:
    """The sides of all boxes along one input, once for each pattern.

    Attributes
    ----------
    size : float64 array of shape (M P,)
        Probability of being within them.
    factors : float64 array of shape (a, M P)
        Whether nodes are inside.
    """

    def __init__(
        self, axis: Axis, boxes: Boxes, patterns: Sequence[Sequence[Mask]], j: int
    ) -> None:
        self._axis = axis
        factor = boxes.factors[j]
        lower, upper = np.clip(boxes.lower[:, j], 0.0, 1.0), np.clip(boxes.upper[:, j], 0.0, 1.0)
        ends, factors, heights = [], [], []
        for masks in patterns:
            mask = masks[j]
            if mask is None:
                # The box holds all draws of the input, or none.
                ends.append((np.zeros_like(lower), np.ones_like(upper)))
                factors.append(np.repeat(factor[-1:], len(factor), axis=0))
                heights.append(factor[-1])
            else:
                ends.append((lower, upper))
                factors.append(factor * mask[:, None])
                heights.append(np.full(len(lower), mask[0]))
        self._lower, self._upper = np.concatenate(ends, axis=1)
        self.factors, self._heights = np.hstack(factors), np.concatenate(heights)
        if axis.is_continuous:
            present = 1.0 - axis.weights[-1]
            inside = self._heights * (self._upper - self._lower)
            self.size = present * inside + axis.weights[-1] * self.factors[-1]
        else:
            self.size = axis.weights @ self.factors

    def common(self, block: slice) -> FloatArray:
        """Return the probabilities of being within two of the boxes, shape (block, M P)."""
        weights, factors = self._axis.weights, self.factors
        if not self._axis.is_continuous:
            return np.asarray((factors[:, block].T * weights) @ factors)
        upper = np.minimum(self._upper[block, None], self._upper)
        lower = np.maximum(self._lower[block, None], self._lower)
        inside = np.maximum(upper - lower, 0.0)
        inside *= (1.0 - weights[-1]) * self._heights[block, None] * self._heights
        if weights[-1] > 0.0:
            inside += weights[-1] * np.outer(factors[-1, block], factors[-1])
        return np.asarray(inside)

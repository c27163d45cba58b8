"""Functional analysis of variance of sums of products.

A function of independent inputs is the sum of a constant, main effects of each input, interactions
of each pair, and higher ones. All are orthogonal, so their variances add up. Here the function is
``sum_m c_m prod_j f_jm(x_j)``, as the mean of a Gaussian process with a product kernel is. So each
integral over many inputs is a product of integrals over one.

References
----------
G. Hooker (2007), Generalized functional ANOVA diagnostics for high-dimensional functions of
dependent variables. A. B. Owen (2014), Sobol' indices and Shapley value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mondrian_bo.importance.axes import Axis, Mask
from mondrian_bo.shared.array_types import FloatArray


class Terms(NamedTuple):
    """A sum of M products of functions of one input each.

    Attributes
    ----------
    weights : float64 array of shape (M,)
        Factors of the products.
    factors : list of d float64 arrays of shape (a_j, M)
        The functions at the nodes of each axis; the last node is that of the absent parameter.
    """

    weights: FloatArray
    factors: list[FloatArray]


@dataclass(frozen=True)
class Decomposition:
    """The parts of a function's variance over its space.

    Attributes
    ----------
    mean, variance : float
        Mean and variance of the function.
    main : float64 array of shape (d,)
        Variances of the main effects.
    pairs : float64 array of shape (d, d)
        Variances of the interactions of pairs, symmetric, 0 on the diagonal.
    axes : list of d Axis
        Nodes of the inputs.
    curves : list of d float64 arrays of shape (a_j,)
        The function's mean at each node of an input, over all others.
    """

    mean: float
    variance: float
    main: FloatArray
    pairs: FloatArray
    axes: list[Axis]
    curves: list[FloatArray]

    def shares(self, interactions: bool = False) -> FloatArray:
        """Return the share of the variance that each input explains, shape (d,).

        Parameters
        ----------
        interactions : bool, default=False
            Whether half of each interaction of a pair counts for either input. These are the
            Shapley effects (Owen 2014) as far as main effects and pairs go.

        Returns
        -------
        float64 array of shape (d,)
            Shares of the variance; all 0 if there is none.
        """
        if self.variance <= 0.0:
            return np.zeros(len(self.main))
        parts = self.main + 0.5 * self.pairs.sum(axis=0) if interactions else self.main
        return np.asarray(parts / self.variance)


def functional_anova(
    axes: list[Axis], patterns: Sequence[Sequence[Mask]], chunks: Iterable[Terms]
) -> Decomposition:
    """Return main effects and interactions of pairs of a function.

    Parameters
    ----------
    axes : list of d Axis
        Nodes of the inputs.
    patterns : sequence of sequences of d masks
        See :func:`mondrian_bo.importance.axes.activity_patterns`.
    chunks : iterable of Terms
        The function, as a sum of sums.

    Returns
    -------
    Decomposition
        Its variance is the sum of all main effects and pairs; higher interactions are not known
        here.

    Notes
    -----
    Takes O(M P (d a + d^2 a^2)) time with P patterns.
    """
    d = len(axes)
    mean = 0.0
    curves = [np.zeros(len(axis.values)) for axis in axes]
    surfaces = {
        (j, k): np.zeros((len(axes[j].values), len(axes[k].values)))
        for j in range(d)
        for k in range(j + 1, d)
    }
    for weights, factors in chunks:
        for masks in patterns:
            # Of each input: its functions where the pattern holds, and their integrals.
            inside = [
                factor * mask[:, None] if mask is not None else factor[-1:]
                for factor, mask in zip(factors, masks, strict=True)
            ]
            integrals = [
                axis.weights @ factor if mask is not None else factor[0]
                for axis, factor, mask in zip(axes, inside, masks, strict=True)
            ]
            after = products_after(integrals)
            before = weights
            for j in range(d):
                curves[j] += inside[j] @ (before * after[j + 1])
                between = before
                for k in range(j + 1, d):
                    others = between * after[k + 1]
                    surfaces[j, k] += (inside[j] * others) @ inside[k].T
                    between = between * integrals[k]
                before = before * integrals[j]
            mean += float(before.sum())
    main = np.array(
        [axis.weights @ (curve - mean) ** 2 for axis, curve in zip(axes, curves, strict=True)]
    )
    pairs = np.zeros((d, d))
    for (j, k), surface in surfaces.items():
        rest = surface - curves[j][:, None] - curves[k] + mean
        pairs[j, k] = pairs[k, j] = axes[j].weights @ rest**2 @ axes[k].weights
    variance = float(main.sum() + 0.5 * pairs.sum())
    return Decomposition(mean, variance, main, pairs, axes, curves)


def products_after(integrals: list[FloatArray]) -> list[FloatArray]:
    """Return the products of the integrals from each input on, d + 1 arrays of shape (M,)."""
    products = [np.ones_like(integrals[0])]
    for integral in reversed(integrals):
        products.append(products[-1] * integral)
    return products[::-1]

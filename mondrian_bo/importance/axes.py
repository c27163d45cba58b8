"""Quadrature over a search space: axes with nodes, and the activity patterns of conditions.

The measure is that of a uniform draw from the unit cube, whose inactive parameters are then left
out (:meth:`mondrian_bo.search_space.SearchSpace.sample`). So parameters with ``log`` are uniform in
the logarithm. The draws of all parameters are independent, also those that are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np

from mondrian_bo.search_space import Categorical, Int, Parameter, SearchSpace
from mondrian_bo.shared.array_types import FloatArray

_MOST_VALUES = 64
"""Largest grid whose values are all nodes; a finer one is treated as continuous, our choice."""

_FEWEST_NODES = 3
"""Gauss-Legendre nodes of a short interval, our choice: exact for polynomials of degree 5."""

_MOST_PATTERNS = 256
"""Largest number of activity patterns, our choice: the time is proportional to it. Of more, the
most probable are kept."""

Mask: TypeAlias = FloatArray | None
"""Of one parameter in a pattern: factors of its weights, shape (a,); None if it is inactive."""


class Axis(NamedTuple):
    """Nodes and weights for integrals over one parameter.

    Attributes
    ----------
    values : float64 array of shape (a,)
        Entries of rows. The last one is NaN, for the absent parameter.
    weights : float64 array of shape (a,)
        Probabilities of the nodes, with sum 1. That of the last one is 0 unless trials lack the
        parameter for reasons that no condition explains.
    is_continuous : bool
        Whether the nodes are those of a quadrature, not all values.
    """

    values: FloatArray
    weights: FloatArray
    is_continuous: bool


def new_axis(
    parameter: Parameter, breaks: FloatArray, n_nodes: int, is_free: bool, absent: float
) -> Axis:
    """Return the axis of a parameter.

    Parameters
    ----------
    parameter : Float, Int or Categorical
        The parameter.
    breaks : float64 array of shape (b,)
        Positions in (0, 1) where the integrands jump, ascending. Those of grids need none.
    n_nodes : int
        Gauss-Legendre nodes of a continuous parameter, spread over the intervals between breaks.
    is_free : bool
        Whether a large grid may be treated as continuous, because no other parameter depends on it.
    absent : float
        Probability that the parameter is absent without explanation.

    Returns
    -------
    Axis
        The axis.
    """
    size = parameter.n_values
    is_small = size <= _MOST_VALUES or isinstance(parameter, Categorical)
    is_continuous = not size or (is_free and not is_small)
    if not is_continuous:
        alone = SearchSpace({"it": replace(parameter, condition=None)})
        values = alone.enumerate_rows()[:, 0]
        weights = np.full(size, 1.0 / size)
        if isinstance(parameter, Int) and parameter.log:
            # Cells of one unit on the logarithmic scale (`log_cell_centres`).
            base = parameter.low - 0.5
            weights = np.diff(np.log1p(np.arange(size + 1) / base) / math.log1p(size / base))
    else:
        edges = np.concatenate([[0.0], breaks, [1.0]])
        n_each = max(n_nodes // (len(edges) - 1), _FEWEST_NODES)
        nodes, own = np.polynomial.legendre.leggauss(n_each)
        widths = np.diff(edges)
        values = (edges[:-1, None] + 0.5 * widths[:, None] * (nodes + 1.0)).ravel()
        weights = (0.5 * widths[:, None] * own).ravel()
    weights = np.append((1.0 - absent) * weights, absent)
    return Axis(np.append(values, np.nan), weights, is_continuous)


def activity_patterns(space: SearchSpace, axes: Sequence[Axis]) -> list[list[Mask]]:
    """Return which parameters are active together, and for which values of their parents.

    Parameters
    ----------
    space : SearchSpace
        The space.
    axes : sequence of d Axis
        Its axes.

    Returns
    -------
    list of list of d masks
        The patterns exclude each other. Together they cover the space, unless there are more than
        256: then the most probable are kept, with weights that have the sum 1.
    """
    children: dict[int, list[int]] = {j: [] for j in range(space.n_dimensions)}
    roots = []
    for j, parameter in enumerate(space.parameters):
        if parameter.condition is None:
            roots.append(j)
        else:
            children[space.names.index(parameter.condition.parent)].append(j)
    patterns: list[tuple[float, dict[int, Mask]]] = [(1.0, {})]
    for root in roots:
        found = _patterns_below(space, axes, children, root)
        patterns = [
            (probability * own, {**masks, **more})
            for (probability, masks), (own, more) in product(patterns, found)
        ]
        if len(patterns) > _MOST_PATTERNS:
            patterns = _most_probable(patterns, roots[0])
    return [[masks[j] for j in range(space.n_dimensions)] for _, masks in patterns]


def _patterns_below(
    space: SearchSpace, axes: Sequence[Axis], children: dict[int, list[int]], j: int
) -> list[tuple[float, dict[int, Mask]]]:
    """Return the patterns of an active parameter and all that depend on it, with probabilities."""
    axis = axes[j]
    if not children[j]:
        return [(1.0, {j: np.ones(len(axis.values))})]
    # Nodes that activate the same children belong together; NaN activates none.
    active = np.zeros((len(axis.values), len(children[j])), dtype=np.bool_)
    for k, child in enumerate(children[j]):
        condition = space.parameters[child].condition
        assert condition is not None
        cells = [space.parameters[j].index(value) for value in condition.values]
        active[cells, k] = True
    found: list[tuple[float, dict[int, Mask]]] = []
    for choice in np.unique(active, axis=0):
        mask = (active == choice).all(axis=1).astype(np.float64)
        parts: list[list[tuple[float, dict[int, Mask]]]] = [
            _patterns_below(space, axes, children, child)
            if is_active
            else [(1.0, dict.fromkeys(_family(children, child)))]
            for child, is_active in zip(children[j], choice, strict=True)
        ]
        own = float(axis.weights @ mask)
        for combination in product(*parts):
            masks: dict[int, Mask] = {j: mask}
            probability = own
            for share, more in combination:
                probability *= share
                masks.update(more)
            found.append((probability, masks))
    return found if len(found) <= _MOST_PATTERNS else _most_probable(found, j)


def _most_probable(
    patterns: list[tuple[float, dict[int, Mask]]], scaled: int
) -> list[tuple[float, dict[int, Mask]]]:
    """Keep the most probable patterns; one parameter's masks make up for the lost probability."""
    total = sum(probability for probability, _ in patterns)
    kept = sorted(patterns, key=lambda one: -one[0])[:_MOST_PATTERNS]
    factor = total / sum(probability for probability, _ in kept)
    result = []
    for probability, masks in kept:
        mask = masks[scaled]
        assert mask is not None
        result.append((factor * probability, {**masks, scaled: factor * mask}))
    return result


def _family(children: dict[int, list[int]], j: int) -> list[int]:
    """Return a parameter and all that depend on it."""
    return [j, *(k for child in children[j] for k in _family(children, child))]

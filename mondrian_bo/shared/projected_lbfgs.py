"""The minimum of a smooth function in a box, without `scipy.optimize`.

The import of `scipy.optimize` takes about a sixth of what a process computes up to the first
suggestion of its model. The fits that every suggestion may need are therefore minimised here. They
have up to a few hundred variables, and a gradient costs about as much as a value.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import FloatArray

Loss: TypeAlias = Callable[[FloatArray], tuple[float, FloatArray]]
"""Maps a point of shape (d,) to a value and its gradient of shape (d,)."""

Changes: TypeAlias = tuple[tuple[FloatArray, FloatArray], ...]
"""The latest steps, and how the gradient changed along each: what a search knows of curvature."""

_MEMORY = 10
"""Number of latest steps that the curvature is estimated from, as in scipy's L-BFGS-B."""

_SMALLEST_GRADIENT = 1e-5
"""Largest entry of the projected gradient at which a search ends, as in scipy's L-BFGS-B."""

_SMALLEST_GAIN = 1e7 * float(np.finfo(np.float64).eps)
"""Relative decrease of the value at which a search ends, as in scipy's L-BFGS-B."""

_SUFFICIENT = 1e-3
"""Share of the decrease of the linear model that a step must reach, as in scipy's L-BFGS-B."""

_STEEP = 0.9
"""Share of the first slope from which on the slope at the end of a step asks for a longer one, as
in scipy's L-BFGS-B."""

_LARGEST_GROWTH = 4.0
"""Largest factor between two step lengths, as in scipy's L-BFGS-B."""

_SMALLEST_GROWTH = 1.5
"""Smallest factor of a step length that grows; our choice."""

_MOST_TRIES = 20
"""Largest number of step lengths that are tried along one line, as in scipy's L-BFGS-B."""

UNLIMITED = 2**62
"""A number of evaluations that is never reached."""


_PRECISION = float(np.finfo(np.float64).eps)
"""Least curvature along a step, relative to the square of the gradient's change, that counts: below
it a curvature is rounding error."""


class Minimum(NamedTuple):
    """Where a search ended.

    Attributes
    ----------
    x : float64 array of shape (d,)
        The best point found.
    value : float
        The value there.
    changes : tuple of pairs of float64 arrays of shape (d,)
        The latest steps and changes of the gradient, with which a later search may begin.
    """

    x: FloatArray
    value: float
    changes: Changes


class _Point(NamedTuple):
    """A point of the search, the value there and its gradient."""

    x: FloatArray
    value: float
    gradient: FloatArray


def minimise_in_box(
    loss: Loss,
    start: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    max_iterations: int,
    changes: Changes = (),
    max_evaluations: int = UNLIMITED,
) -> Minimum:
    """Find a local minimum by a quasi-Newton method, L-BFGS with projection onto the box.

    Parameters
    ----------
    loss : callable
        Maps a point of shape (d,) to a value and its gradient of shape (d,). Infinite and NaN
        values are avoided.
    start : float64 array of shape (d,)
        Where the search begins; entries outside of the box move to its bounds.
    bounds : tuple of two float64 arrays of shape (d,)
        The lower and upper bounds.
    max_iterations : int
        Largest number of steps. A step needs one call of `loss` as a rule, and O(d) besides.
    changes : tuple of pairs of float64 arrays of shape (d,), default=()
        Those of an earlier search for the minimum of a similar loss, whose curvature then counts
        from the first step on.
    max_evaluations : int, default=2**62
        Largest number of calls of `loss`, at least 1.

    Returns
    -------
    Minimum
        The best point found.

    References
    ----------
    Nocedal and Wright (2006), Numerical optimization, Algorithm 7.4 (the two-loop recursion).
    Bertsekas (1982), Projected Newton methods for optimization problems with simple constraints:
    variables stay at a bound that the gradient pushes them to.
    """
    lower, upper = bounds
    n_left = max_evaluations

    def counted(x: FloatArray) -> tuple[float, FloatArray]:
        nonlocal n_left
        n_left -= 1
        return loss(x)

    point = _Point(start := _clipped(start, bounds), *counted(start))
    latest = deque(changes, maxlen=_MEMORY)
    for _ in range(max_iterations):
        free = np.empty(len(start), dtype=np.bool_)
        if not _find_free(point.x, point.gradient, lower, upper, free) > _SMALLEST_GRADIENT:
            break
        pairs = np.array(latest) if latest else np.empty((0, 2, len(start)))
        direction = _two_loops(point.gradient, pairs, free)
        if _turn_inwards(point.x, point.gradient, lower, upper, direction) >= 0.0:
            latest.clear()
            direction = _two_loops(point.gradient, pairs[:0], free)
        found = _search_line(counted, point, direction, bounds, min(n_left, _MOST_TRIES))
        if found is None:
            break
        step, change = found.x - point.x, found.gradient - point.gradient
        if step @ change > _PRECISION * (change @ change):
            latest.append((step, change))
        gain = point.value - found.value
        scale = max(abs(point.value), abs(found.value), 1.0)
        point = found
        if gain <= _SMALLEST_GAIN * scale:
            break
    return Minimum(point.x, point.value, tuple(latest))


def _clipped(x: FloatArray, bounds: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return the nearest point in the box, in a third of the time of `numpy.clip`."""
    return np.asarray(np.minimum(np.maximum(x, bounds[0]), bounds[1]))


@njit(cache=True, nogil=True)
def _find_free(x, gradient, lower, upper, free):  # type: ignore[no-untyped-def]
    """Write which variables the gradient moves, and return the largest move; NaN if it has NaN."""
    largest = 0.0
    for j in range(len(x)):
        projected = min(max(x[j] - gradient[j], lower[j]), upper[j]) - x[j]
        free[j] = projected != 0.0
        if math.isnan(gradient[j]):
            return math.nan
        largest = max(largest, abs(projected))
    return largest


@njit(cache=True, nogil=True)
def _turn_inwards(x, gradient, lower, upper, direction):  # type: ignore[no-untyped-def]
    """Stop variables at a bound that a direction moves outwards, and return its slope."""
    slope = 0.0
    for j in range(len(x)):
        if (x[j] == lower[j] and direction[j] < 0.0) or (x[j] == upper[j] and direction[j] > 0.0):
            direction[j] = 0.0
        slope += gradient[j] * direction[j]
    return slope


@njit(cache=True, nogil=True)
def _two_loops(gradient, pairs, free):  # type: ignore[no-untyped-def]
    """Return the quasi-Newton direction among the free variables; the others are 0.

    Without curvature it is that of the gradient, of length 1 at most. `pairs`, of shape (k, 2, d),
    are overwritten.
    """
    # Loops in place of array expressions, which compile for three times as long.
    n = len(gradient)
    direction = np.empty(n)
    for j in range(n):
        direction[j] = -gradient[j] if free[j] else 0.0
    n_pairs = 0
    curvatures, squares = np.empty(len(pairs)), np.empty(len(pairs))
    for k in range(len(pairs)):
        pair = pairs[n_pairs]
        for i in range(2):
            for j in range(n):
                pair[i, j] = pairs[k, i, j] if free[j] else 0.0
        curvatures[n_pairs] = np.dot(pair[0], pair[1])
        squares[n_pairs] = np.dot(pair[1], pair[1])
        n_pairs += curvatures[n_pairs] > _PRECISION * squares[n_pairs]
    if n_pairs == 0:
        length = max(1.0, math.sqrt(np.dot(direction, direction)))
        for j in range(n):
            direction[j] /= length
        return direction
    factors = np.empty(n_pairs)
    for k in range(n_pairs - 1, -1, -1):
        factors[k] = np.dot(pairs[k, 0], direction) / curvatures[k]
        for j in range(n):
            direction[j] -= factors[k] * pairs[k, 1, j]
    scale = curvatures[n_pairs - 1] / squares[n_pairs - 1]
    for j in range(n):
        direction[j] *= scale
    for k in range(n_pairs):
        correction = np.dot(pairs[k, 1], direction) / curvatures[k]
        for j in range(n):
            direction[j] += (factors[k] - correction) * pairs[k, 0, j]
    return direction


def _search_line(
    loss: Loss,
    point: _Point,
    direction: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    n_tries: int,
) -> _Point | None:
    """Return a point of sufficient decrease along a direction, within the box; None if none is met.

    A step that ends where the loss is still steep grows for as long as that helps.
    """
    best: _Point | None = None
    length = 1.0
    for _ in range(n_tries):
        x = _clipped(point.x + length * direction, bounds)
        tried = _Point(x, *loss(x))
        slope = float(point.gradient @ (x - point.x))
        if best is not None and not tried.value < best.value:
            break
        # Within the box a step may lead uphill: its downhill part may be cut off.
        if slope < 0.0 and tried.value <= point.value + _SUFFICIENT * slope:
            best = tried
            last_slope = float(tried.gradient @ (x - point.x))
            if last_slope >= _STEEP * slope:
                break
            # The minimum of a parabola through both slopes.
            growth = slope / (slope - last_slope) if slope < last_slope else _LARGEST_GROWTH
            length *= min(max(growth, _SMALLEST_GROWTH), _LARGEST_GROWTH)
        elif best is not None:
            break
        else:
            # The minimum of a parabola through the two values and the slope; NaN counts as half.
            excess = tried.value - point.value - slope
            shrunk = -0.5 * length * slope / excess if excess > 0.0 else math.nan
            length = max(shrunk, 0.1 * length) if shrunk <= 0.5 * length else 0.5 * length
    return best

"""Pareto fronts: non-dominated points, hypervolumes, and the region that a front leaves open.

Larger is better in every objective. Point a dominates point b if it is at least as good in all
objectives and better in one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import BoolArray, FloatArray, IntArray


class BoxDecomposition(NamedTuple):
    """The region above a reference that a front does not dominate, as b disjoint boxes.

    Boxes are stored as positions in sorted coordinates: a score needs one evaluation for each
    coordinate, not two for each box.

    Attributes
    ----------
    coordinates : float64 array of shape (K, c)
        Coordinates of each objective, ascending: the reference, those of the front, and infinity
        in the entries that are left.
    lower, upper : int64 arrays of shape (b, K)
        Positions of the lower and upper corners in `coordinates`. A box without an upper end in
        an objective ends at infinity.
    """

    coordinates: FloatArray
    lower: IntArray
    upper: IntArray


def non_dominated(values: FloatArray) -> BoolArray:
    """Find the points that no other point dominates.

    Parameters
    ----------
    values : float64 array of shape (n, K)
        The points; infinite values are allowed. Larger is better.

    Returns
    -------
    bool array of shape (n,)
        Whether each point is on the Pareto front. Equal points do not dominate each other, so all
        copies of a point of the front are on it.

    Raises
    ------
    ValueError
        If ``values`` is no matrix with at least one column, or contains NaN.

    Notes
    -----
    O(n log n) for one and two objectives, O(n p K) for more, with p points on the front
    (Kung, Luccio and Preparata, 1975, On finding the maxima of a set of vectors).
    """
    values = _as_points(values, "values")
    order = np.lexsort(-values.T[::-1])
    kept = np.zeros(len(values), dtype=np.bool_)
    kept[order] = _scan(values[order])
    return kept


def hypervolume(points: FloatArray, reference: FloatArray) -> float:
    """Compute the volume that is dominated by points and above a reference.

    Parameters
    ----------
    points : float64 array of shape (p, K)
        The points, dominated ones and copies included; p may be 0. Larger is better.
    reference : float64 array of shape (K,)
        The lower end of the region that counts.

    Returns
    -------
    float
        The volume, exact up to rounding: a sum of positive terms. The time is that of
        :func:`decompose`.

    Raises
    ------
    ValueError
        If shapes do not fit, the reference is not finite, or a point is NaN or plus infinity.
    """
    coordinates, ranks = _ranks_above(points, reference)
    return float(_sweep(ranks, coordinates)[1])


def decompose(front: FloatArray, reference: FloatArray) -> BoxDecomposition:
    """Divide the region above a reference that a front does not dominate into boxes.

    Parameters
    ----------
    front : float64 array of shape (p, K)
        The points, dominated ones and copies included; p may be 0. Larger is better. Points that
        are not above the reference in all objectives count for nothing.
    reference : float64 array of shape (K,)
        The lower end of the region.

    Returns
    -------
    BoxDecomposition
        Disjoint boxes that cover the region: 1 with one objective, p + 1 with two, at most 2 p + 1
        with three, for p points of the front without ties.

    Raises
    ------
    ValueError
        If shapes do not fit, the reference is not finite, or a point is NaN or plus infinity.

    Notes
    -----
    A sweep over the last objective, from the top. A partition of the other objectives is cut by
    each point that is passed, and the parts that have changed become boxes. O(p log p + p b), where
    b is the number of boxes. With two and three objectives it gives the partitions of Emmerich,
    Yang, Deutz, Wang and Fonseca (2016), A multicriteria generalization of Bayesian global
    optimization, and of Yang, Emmerich, Deutz and Baeck (2019), Efficient computation of expected
    hypervolume improvement using box decomposition algorithms, section 4. Lacour, Klamroth and
    Fonseca (2017), A box decomposition algorithm to compute the hypervolume indicator, divide the
    dominated region.
    """
    coordinates, ranks = _ranks_above(front, reference)
    boxes, _ = _sweep(ranks, coordinates)
    n_objectives = len(coordinates)
    lower, upper = boxes[:, :n_objectives], boxes[:, n_objectives:]
    return BoxDecomposition(coordinates, lower.copy(), upper.copy())


def _as_points(points: FloatArray, name: str) -> FloatArray:
    """Return points as a matrix of float64, or raise a ValueError."""
    points = np.ascontiguousarray(points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] == 0:
        raise ValueError(
            f"`{name}` must have one row per point and one column per objective, got shape "
            f"{points.shape}."
        )
    if np.isnan(points).any():
        raise ValueError(f"`{name}` must not contain NaN.")
    return points


def _ranks_above(points: FloatArray, reference: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return coordinates and the positions in them of the points above the reference.

    Returns
    -------
    coordinates : float64 array of shape (K, c)
        As in `BoxDecomposition`.
    ranks : int64 array of shape (p, K)
        Positions, sorted by the last objective, from the largest. Among equals by the others, so
        that a point stands before all that it dominates.
    """
    points = _as_points(points, "points")
    reference = np.ascontiguousarray(reference, dtype=np.float64)
    if reference.shape != points.shape[1:] or not np.isfinite(reference).all():
        raise ValueError(
            f"`reference` must have {points.shape[1]} finite entries, one for each objective, got "
            f"{reference}."
        )
    if np.isposinf(points).any():
        raise ValueError("Points must not be infinitely good.")
    points = points[(points > reference).all(axis=1)]
    n_points, n_objectives = points.shape
    coordinates = np.full((n_objectives, n_points + 2), np.inf)
    coordinates[:, 0] = reference
    ranks = np.empty((n_points, n_objectives), dtype=np.int64)
    for objective in range(n_objectives):
        distinct, inverse = np.unique(points[:, objective], return_inverse=True)
        coordinates[objective, 1 : len(distinct) + 1] = distinct
        ranks[:, objective] = inverse + 1
    return coordinates, ranks[np.lexsort(-ranks.T)]


@njit(cache=True, nogil=True)
def _scan(points: FloatArray) -> BoolArray:
    """Return which points are not dominated, of points in descending lexical order."""
    n_points, n_objectives = points.shape
    kept = np.zeros(n_points, dtype=np.bool_)
    front = np.empty(n_points, dtype=np.int64)
    size = 0
    for i in range(n_points):
        # With two objectives the last point of the front is the best one in the second. It
        # dominates the next point if any point does.
        position = max(size - 1, 0) if n_objectives <= 2 else 0
        dominated = False
        while position < size and not dominated:
            better = False
            for k in range(n_objectives):
                best = points[front[position], k]
                if best < points[i, k]:
                    better = False
                    break
                better |= best > points[i, k]
            dominated = better
            position += 1
        if not dominated:
            kept[i] = True
            front[size] = i
            size += 1
    return kept


@njit(cache=True, nogil=True)
def _sweep(ranks: IntArray, coordinates: FloatArray) -> tuple[IntArray, float]:
    """Decompose the region that is not dominated, and add up the volume that is.

    Parameters
    ----------
    ranks : int64 array of shape (p, K)
        Positions of points in `coordinates`, descending in the last column.
    coordinates : float64 array of shape (K, c)
        Coordinates, ascending, with infinity at the end.

    Returns
    -------
    boxes : int64 array of shape (b, 2 K)
        Positions of the lower corners, then of the upper corners.
    volume : float
        The dominated volume.
    """
    n_points, n_objectives = ranks.shape
    last = n_objectives - 1
    boxes = np.empty((2 * n_points + 2, 2 * n_objectives), dtype=np.int64)
    n_boxes = 0
    # The partition of the other objectives at the present height. In the last objective, a part
    # has the height at which it began as its upper end.
    parts = np.empty((2 * n_points + 2, 2 * n_objectives), dtype=np.int64)
    for k in range(n_objectives):
        parts[0, k] = 0
        parts[0, n_objectives + k] = coordinates.shape[1] - 1
    n_parts = 1
    pieces = np.empty((2 * n_points + 2, 2 * n_objectives), dtype=np.int64)
    section = 0.0
    volume = 0.0
    for i in range(n_points):
        point = ranks[i]
        height = point[last]
        n_pieces = 0
        position = 0
        while position < n_parts:
            if not _is_above(point, parts[position]):
                position += 1
                continue
            section += _dominated_volume(point, parts[position], coordinates)
            pieces = _with_room(pieces, n_pieces, last)
            n_pieces = _cut(point, parts[position], pieces, n_pieces)
            if parts[position, n_objectives + last] > height:
                boxes = _with_room(boxes, n_boxes, 1)
                _copy(parts, position, boxes, n_boxes)
                boxes[n_boxes, last] = height
                n_boxes += 1
            n_parts -= 1
            _copy(parts, n_parts, parts, position)
        n_pieces = _merge(pieces, n_pieces)
        parts = _with_room(parts, n_parts, n_pieces)
        for piece in range(n_pieces):
            _copy(pieces, piece, parts, n_parts)
            n_parts += 1
        below = ranks[i + 1, last] if i + 1 < n_points else 0
        volume += section * (coordinates[last, height] - coordinates[last, below])
    boxes = _with_room(boxes, n_boxes, n_parts)
    for position in range(n_parts):
        _copy(parts, position, boxes, n_boxes)
        n_boxes += 1
    return boxes[:n_boxes], volume


@njit(cache=True, nogil=True)
def _is_above(point: IntArray, part: IntArray) -> bool:
    """Return whether a point dominates some of a part, in all objectives but the last."""
    above = True
    for k in range(len(point) - 1):
        above &= part[k] < point[k]
    return above


@njit(cache=True, nogil=True)
def _dominated_volume(point: IntArray, part: IntArray, coordinates: FloatArray) -> float:
    """Return the volume of a part that a point dominates, without the last objective."""
    n_objectives = len(point)
    volume = 1.0
    for k in range(n_objectives - 1):
        end = min(part[n_objectives + k], point[k])
        volume *= coordinates[k, end] - coordinates[k, part[k]]
    return volume


@njit(cache=True, nogil=True)
def _cut(point: IntArray, part: IntArray, pieces: IntArray, n_pieces: int) -> int:
    """Append what a point leaves of a part to the pieces; return their number.

    Piece k is better than the point in objective k, and worse in those before. The pieces begin at
    the height of the point.
    """
    n_objectives = len(point)
    last = n_objectives - 1
    for k in range(last):
        if part[n_objectives + k] <= point[k]:
            continue
        piece = pieces[n_pieces]
        for j in range(last):
            piece[j] = part[j]
            piece[n_objectives + j] = part[n_objectives + j]
            if j < k:
                piece[n_objectives + j] = min(part[n_objectives + j], point[j])
        piece[k] = point[k]
        piece[last] = 0
        piece[n_objectives + last] = point[last]
        n_pieces += 1
    return n_pieces


@njit(cache=True, nogil=True)
def _merge(pieces: IntArray, count: int) -> int:
    """Merge disjoint boxes, in place, that form a box together; return their number."""
    n_objectives = pieces.shape[1] // 2
    merged = True
    while merged:
        merged = False
        i = 0
        while i < count:
            j = i + 1
            while j < count:
                along = _shared_face(pieces[i], pieces[j])
                if along < 0:
                    j += 1
                    continue
                end = n_objectives + along
                pieces[i, along] = min(pieces[i, along], pieces[j, along])
                pieces[i, end] = max(pieces[i, end], pieces[j, end])
                count -= 1
                _copy(pieces, count, pieces, j)
                merged = True
            i += 1
    return count


@njit(cache=True, nogil=True)
def _shared_face(first: IntArray, second: IntArray) -> int:
    """Return the only objective in which two boxes differ, if they touch in it; -1 otherwise."""
    n_objectives = len(first) // 2
    along = -1
    for k in range(n_objectives):
        end = n_objectives + k
        if first[k] == second[k] and first[end] == second[end]:
            continue
        if along >= 0 or (first[end] != second[k] and second[end] != first[k]):
            return -1
        along = k
    return along


@njit(cache=True, nogil=True)
def _copy(source: IntArray, position: int, target: IntArray, to: int) -> None:
    """Copy a row of one matrix to a row of another."""
    for k in range(source.shape[1]):
        target[to, k] = source[position, k]


@njit(cache=True, nogil=True)
def _with_room(rows: IntArray, count: int, more: int) -> IntArray:
    """Return rows, or a longer copy if they have no room for more behind the first `count`."""
    if count + more <= len(rows):
        return rows
    longer = np.empty((2 * (count + more), rows.shape[1]), dtype=np.int64)
    for position in range(count):
        _copy(rows, position, longer, position)
    return longer

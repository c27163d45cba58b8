"""Cells of Mondrian grids: an independent one-dimensional Mondrian process on each axis."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import BoolArray, FloatArray, IntArray
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cuts import EMPTY, Cut, merge, split

_FARTHEST = float(np.finfo(np.float64).max)
"""Largest distance of a point from the training points: a lifetime of 0 times it is 0, not NaN."""


class GridCells:
    """M grids over the same points, whose lifetimes can be raised and lowered.

    See Balog2016thesis, section 5.1. Between two neighbouring coordinates only the first cut
    matters; its time is exponential with the gap as rate. A cell has a number, which is ``EMPTY``
    if it holds no training point.

    Parameters
    ----------
    points : float64 array of shape (n, d)
        Training points and, after them, other points.
    n_training : int
        Number of training points.
    n_grids : int
        Number of grids, M.
    rng : numpy.random.Generator
        Source of the times and places of cuts.

    Attributes
    ----------
    lifetimes : float64 array of shape (d,)
        Current lifetimes, 0 at first.
    numbers : int64 array of shape (n, M)
        The number of each point's current cell in each grid, at least 1 or ``EMPTY``.
    n_numbers : int
        Cell numbers are smaller than this.
    n_cells : int
        Number of cells with training points, C.
    """

    def __init__(
        self, points: FloatArray, n_training: int, n_grids: int, rng: np.random.Generator
    ) -> None:
        n_points, n_dimensions = points.shape
        self.n_training = n_training
        self.lifetimes = np.zeros(n_dimensions)
        self.numbers: IntArray = np.tile(1 + np.arange(n_grids), (n_points, 1))
        self.n_numbers = n_grids * (n_points + 1) + 3
        self.n_cells = n_grids
        self._free = list(range(self.n_numbers - 1, n_grids, -1))
        self.coordinates: list[FloatArray] = []
        self.times: list[FloatArray] = []
        self.places: list[FloatArray] = []
        # Interval i of an axis starts at the cut before coordinate i; interval 0 is unbounded.
        self._active: list[BoolArray] = []
        self._codes: list[NDArray[np.uint64]] = []
        self._ranks = np.empty((n_points, n_dimensions), dtype=np.int64)
        self._intervals = np.zeros((n_grids, n_points, n_dimensions), dtype=np.int64)
        self._keys = np.zeros((n_grids, n_points), dtype=np.uint64)
        for d in range(n_dimensions):
            known, self._ranks[:, d] = np.unique(points[:, d], return_inverse=True)
            gaps = np.diff(known)
            shape = n_grids, len(gaps)
            self.coordinates.append(known)
            with np.errstate(over="ignore"):  # tiny gaps are never cut
                self.times.append(rng.exponential(size=shape) / gaps)  # Exp(gap), section 5.1
            self.places.append(known[:-1] + gaps * rng.random(shape))
            active = np.zeros((n_grids, len(known)), dtype=bool)
            active[:, 0] = True
            self._active.append(active)
            # A cell's key is a sum of random codes; two cells collide with probability 2^-64.
            self._codes.append(rng.integers(2**64, size=len(known), dtype=np.uint64))
            self._keys += self._codes[d][0]
        self._sorted_times = [np.sort(times[times < np.inf]) for times in self.times]

    @property
    def n_grids(self) -> int:
        """Number of grids, M."""
        return int(self.numbers.shape[1])

    def cut_time(self, dimension: int, steps: int) -> float | None:
        """Return the lifetime that adds this number of cuts, or removes them if it is negative.

        0 is the lifetime without cuts. None if there are too few cuts.
        """
        times = self._sorted_times[dimension]
        position = int(np.searchsorted(times, self.lifetimes[dimension], side="right")) + steps
        if position < 0 or position > len(times):
            return None
        return 0.0 if position == 0 else float(times[position - 1])

    def n_cuts_between(self, lifetimes: FloatArray) -> int:
        """Return the number of cuts that other lifetimes add and remove."""
        total = 0
        for times, before, after in zip(self._sorted_times, self.lifetimes, lifetimes, strict=True):
            ends = np.searchsorted(times, [before, after], side="right")
            total += abs(int(ends[1] - ends[0]))
        return total

    def changes(self, dimension: int, lifetime: float) -> Iterator[tuple[Cut, bool]]:
        """Change a lifetime cut by cut, and yield the splits and merges of training cells.

        Parameters
        ----------
        dimension : int
            The dimension of the lifetime.
        lifetime : float
            The new lifetime.

        Yields
        ------
        cut : Cut
            The split or merged cell; `numbers` has changed already.
        is_split : bool
            Whether the cell has been split.
        """
        before, times = self.lifetimes[dimension], self.times[dimension]
        low, high = min(before, lifetime), max(before, lifetime)
        grid, gap = np.nonzero((times > low) & (times <= high))
        order = np.argsort(times[grid, gap], kind="stable")
        grows = lifetime > before
        self.lifetimes[dimension] = lifetime
        for i in order if grows else order[::-1]:
            place = int(grid[i]), dimension, int(gap[i]) + 1
            if grows:
                for cut in self._add(*place):
                    yield cut, True
            else:
                for cut in self._remove(*place):
                    yield cut, False

    def _add(self, grid: int, dimension: int, interval: int) -> Iterator[Cut]:
        """Add a cut to a grid; yield the splits of training cells."""
        inside, moved = self._move(grid, dimension, interval, adds=True)
        own = self.numbers[inside, grid]
        crossed = np.setdiff1d(own[moved], [EMPTY])
        for cell in crossed:
            members = inside[own == cell]
            on_right = moved[own == cell]
            left, right = members[~on_right], members[on_right]
            trained = [bool(np.any(part < self.n_training)) for part in (left, right)]
            if all(trained):
                new = self._free.pop(), self._free.pop()
                cut = Cut(grid, int(cell), *new, left, right)
                split(self.numbers, cut)
                self.n_cells += 1
                yield cut
                self._free.append(int(cell))
            else:
                self.numbers[left if trained[1] else right, grid] = EMPTY

    def _remove(self, grid: int, dimension: int, interval: int) -> Iterator[Cut]:
        """Remove a cut of a grid; yield the merges of training cells."""
        inside, moved = self._move(grid, dimension, interval, adds=False)
        _, groups = np.unique(self._keys[grid, inside], return_inverse=True)
        for group in np.unique(groups[moved]):
            members = inside[groups == group]
            own = self.numbers[members, grid]
            known = np.setdiff1d(own, [EMPTY])
            if len(known) == 2:
                new = self._free.pop()
                on_right = own == known[1]
                parts = int(known[0]), int(known[1])
                cut = Cut(grid, new, *parts, members[~on_right], members[on_right])
                merge(self.numbers, cut)
                self.n_cells -= 1
                yield cut
                self._free.extend(parts)
            elif len(known) == 1:
                self.numbers[members, grid] = known[0]

    def _move(
        self, grid: int, dimension: int, interval: int, adds: bool
    ) -> tuple[IntArray, BoolArray]:
        """Move points from an interval to the one before it, or back.

        Returns
        -------
        inside : int64 array
            The points of both intervals.
        moved : bool array
            Which of them moved.
        """
        active = self._active[dimension][grid]
        before = int(np.flatnonzero(active[:interval])[-1])
        active[interval] = adds
        intervals = self._intervals[grid, :, dimension]
        if adds:
            inside = np.flatnonzero(intervals == before)
            moved = self._ranks[inside, dimension] >= interval
            old, new = before, interval
        else:
            inside = np.flatnonzero((intervals == before) | (intervals == interval))
            moved = intervals[inside] == interval
            old, new = interval, before
        intervals[inside[moved]] = new
        codes = self._codes[dimension]
        # Arrays wrap around without the warning that scalars give.
        self._keys[grid, inside[moved]] += codes[[new]] - codes[[old]]
        return inside, moved

    @np.errstate(over="ignore")
    def locate(self, points: FloatArray) -> tuple[IntArray, FloatArray]:
        """Find the cells of points that are not in the grids, O(M (d log n + log C)) each.

        The first cut between two neighbouring coordinates has a sampled place. Later cuts have
        none; they separate a point from its neighbour with a probability.

        Parameters
        ----------
        points : float64 array of shape (m, d)
            Points.

        Returns
        -------
        cells : int64 array of shape (m, M)
            The number of the cell of training points that holds each point unless a later cut
            separates them; ``EMPTY`` if there is none.
        stays : float64 array of shape (m, M)
            The probability that no later cut does.
        """
        cells = np.full((len(points), self.n_grids), EMPTY, dtype=np.int64)
        exponents = np.zeros(cells.shape)
        keys = np.zeros(cells.shape, dtype=np.uint64)
        for d, coordinates in enumerate(self.coordinates):
            x = points[:, d]
            # Coordinate `right` is the first one beyond x.
            right = np.searchsorted(coordinates, x, side="right")
            left = np.maximum(right - 1, 0)
            gap = np.minimum(left, max(len(coordinates) - 2, 0))
            outside = np.maximum(coordinates[0] - x, 0.0) + np.maximum(x - coordinates[-1], 0.0)
            outside = np.minimum(outside, _FARTHEST)
            between = (right > 0) & (right < len(coordinates)) & (x != coordinates[left])
            for m in range(self.n_grids):
                rank = left.copy()
                distance, time = outside.copy(), np.full(len(x), self.lifetimes[d])
                if len(coordinates) > 1:
                    first = self.times[d][m, gap]
                    cut = between & (first <= self.lifetimes[d])
                    beyond = cut & (x > self.places[d][m, gap])
                    rank[beyond] += 1
                    distance[cut] = np.abs(x - coordinates[rank])[cut]
                    time[cut] -= first[cut]
                begins = np.maximum.accumulate(
                    np.where(self._active[d][m], np.arange(len(coordinates)), 0)
                )
                keys[:, m] += self._codes[d][begins[rank]]
                exponents[:, m] += distance * time
        for m in range(self.n_grids):
            known, first_point = np.unique(self._keys[m, : self.n_training], return_index=True)
            place = np.minimum(np.searchsorted(known, keys[:, m]), len(known) - 1)
            same = known[place] == keys[:, m]
            cells[same, m] = self.numbers[first_point[place[same]], m]
        return cells, np.exp(-exponents)

"""The cuts of sampled partitions by time, and the cells before and after each (Balog2016, 4.1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import IntArray
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest
from mondrian_bo.trees.layout import LEFT, NONE, RIGHT, ROOT
from mondrian_bo.trees.lifetime_partitions import arrange

EMPTY = 0
"""The number of every cell without training points. Its weight is always 0."""


class Cut(NamedTuple):
    """A cut of a cell: going forward in time the cell splits, going back the two parts merge.

    Attributes
    ----------
    tree : int
        The partition that is cut.
    parent, left, right : int
        Numbers of the cell and of its parts. A part without training points is ``EMPTY``, and the
        other part then keeps the number of the cell.
    left_members, right_members : int32 arrays
        The points of the parts.
    """

    tree: int
    parent: int
    left: int
    right: int
    left_members: NDArray[np.int32]
    right_members: NDArray[np.int32]

    @property
    def splits_training(self) -> bool:
        """Whether there are training points on both sides."""
        return self.left != EMPTY and self.right != EMPTY


class CutArrays(NamedTuple):
    """A sequence of cuts as arrays, for compiled functions.

    Attributes
    ----------
    order : int32 array of shape (M, n)
        The points of each partition, those of each cell side by side.
    tree : int64 array of shape (n_cuts,)
        Which partition is cut.
    start, middle, end : int32 arrays of shape (n_cuts,)
        The left part holds the points from `start` to `middle`, the right part those to `end`.
    cells : int64 array of shape (n_cuts, 3)
        Numbers of the cell, its left and its right part.
    """

    order: NDArray[np.int32]
    tree: IntArray
    start: NDArray[np.int32]
    middle: NDArray[np.int32]
    end: NDArray[np.int32]
    cells: IntArray


class CutSequence:
    """The cuts of a forest by time, of those cells that hold training points.

    Parameters
    ----------
    forest : PartitionForest
        Partitions of training points and, after them, of other points.
    n_training : int
        Number of training points.

    Attributes
    ----------
    times : float64 array of shape (n_cuts,)
        Times of the cuts, in increasing order.
    n_numbers : int
        How many cell numbers there are over all times, ``EMPTY`` included.
    """

    def __init__(self, forest: PartitionForest, n_training: int) -> None:
        arrays = forest.arrays
        shape = arrays.parent.shape
        self._order = np.empty((forest.n_trees, forest.n_points), dtype=np.int32)
        start, end = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int32)
        arrange(arrays, self._order, start, end)
        # The number of training points before each place of `order`.
        trained = np.zeros((forest.n_trees, forest.n_points + 1), dtype=np.int64)
        np.cumsum(self._order < n_training, axis=1, out=trained[:, 1:])
        used = np.arange(shape[1]) < arrays.counters[:, :1]
        tree, node = np.nonzero(used & (arrays.children[:, :, LEFT] != NONE))
        holds = trained[tree, end[tree, node]] > trained[tree, start[tree, node]]
        tree, node = tree[holds], node[holds]
        by_time = np.argsort(arrays.split_time[tree, node], kind="stable")
        self._tree, node = tree[by_time], node[by_time]
        self.times = arrays.split_time[self._tree, node]
        left = arrays.children[self._tree, node, LEFT]
        right = arrays.children[self._tree, node, RIGHT]
        self._start, self._middle = start[self._tree, left], end[self._tree, left]
        self._end = end[self._tree, right]
        in_left = trained[self._tree, self._middle] > trained[self._tree, self._start]
        in_right = trained[self._tree, self._end] > trained[self._tree, self._middle]
        self._cells = np.empty((len(node), 3), dtype=np.int64)
        cell_of = np.zeros(shape, dtype=np.int64)
        roots = np.arange(forest.n_trees)
        cell_of[roots, arrays.counters[:, ROOT]] = 1 + roots
        self.n_numbers = _number_parts(
            self._tree, node, left, right, in_left, in_right, cell_of, self._cells
        )

    @property
    def arrays(self) -> CutArrays:
        """All cuts as arrays."""
        return CutArrays(self._order, self._tree, self._start, self._middle, self._end, self._cells)

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, index: int) -> Cut:
        t = int(self._tree[index])
        start, middle, end = self._start[index], self._middle[index], self._end[index]
        parent, left, right = (int(cell) for cell in self._cells[index])
        return Cut(t, parent, left, right, self._order[t, start:middle], self._order[t, middle:end])

    def first_cells(self) -> IntArray:
        """Return the cells of all points before any cut, shape (n, M)."""
        n_trees, n_points = self._order.shape
        return np.tile(1 + np.arange(n_trees), (n_points, 1))

    def last_cells(self) -> IntArray:
        """Return the cells of all points after all cuts, shape (n, M)."""
        cells = self.first_cells()
        for i in range(len(self)):
            split(cells, self[i])
        return cells


class CellHistory:
    """The cells with training points after each cut, and how they descend from each other.

    State k has the cells after k cuts that split the training points of a cell. Cells are numbered
    as by :class:`CutSequence`, and listed in the order of their training points, in which the parts
    of a cell are always neighbours.

    Parameters
    ----------
    cuts : CutSequence
        The cuts.

    Attributes
    ----------
    state_of_position : int64 array of shape (n_cuts + 1,)
        The state after each number of cuts. Cuts that split no training points keep the state.
    births : int64 array of shape (n_numbers,)
        The first state that has the cell.
    cut_off : int64 array of shape (n, M)
        The number of cuts after which each point is in a cell without training points; for a point
        that never is, one more than the number of all cuts.
    """

    def __init__(self, cuts: CutSequence) -> None:
        arrays = cuts.arrays
        n_trees, n_points = arrays.order.shape
        parent, left, right = arrays.cells.T
        counts = (left != EMPTY) & (right != EMPTY)
        self.state_of_position = np.append(0, np.cumsum(counts))
        n_states = int(self.state_of_position[-1])
        self.births = np.zeros(cuts.n_numbers, dtype=np.int64)
        self._parents = np.zeros(cuts.n_numbers, dtype=np.int64)
        place = np.full(cuts.n_numbers, -1)
        place[1 : 1 + n_trees] = n_points * np.arange(n_trees)
        for part, start in ((left, arrays.start), (right, arrays.middle)):
            self.births[part[counts]] = np.arange(1, n_states + 1)
            self._parents[part[counts]] = parent[counts]
            place[part[counts]] = (n_points * arrays.tree + start)[counts]
        last = np.setdiff1d(np.arange(1, cuts.n_numbers), parent[counts])
        self._last = last[np.argsort(place[last])]
        cells = cuts.first_cells()
        self.cut_off = np.full(cells.shape, len(cuts) + 1)
        _follow(arrays, cells, self.cut_off)
        # For each point, the place in `_last` of a part of its last cell with training points.
        self._homes = np.searchsorted(place[self._last], place[cells])

    def n_cells(self, state: IntArray) -> IntArray:
        """Return the number of cells of a state, or of each of several states."""
        return np.asarray(self._homes.shape[1] + state)

    def cells(self, state: int) -> tuple[IntArray, IntArray]:
        """Return the cells of a state, and which of them hold the points.

        Returns
        -------
        cells : int64 array of shape (C,)
            Numbers of the cells.
        places : int64 array of shape (n, M)
            The place of each point's cell in `cells`. For a point in a cell without training points
            it is that of its last cell with training points, or of a part of that cell.
        """
        cells, groups = self.groups(self._last, state)
        return cells, groups[self._homes]

    def groups(self, cells: IntArray, state: int) -> tuple[IntArray, IntArray]:
        """Group cells by the cell of an earlier state that they are parts of.

        Parameters
        ----------
        cells : int64 array of shape (C,)
            Some cells of a later state, in order.
        state : int
            The earlier state.

        Returns
        -------
        ancestors : int64 array of shape (C',)
            The cells of the earlier state, in order.
        groups : int64 array of shape (C,)
            For each cell, the place in `ancestors` of the cell that it is part of.
        """
        found = _ancestors(self.births, self._parents, cells, state)
        is_first = np.append(True, found[1:] != found[:-1])[: len(found)]
        return found[is_first], np.cumsum(is_first) - 1


def split(cells: IntArray, cut: Cut) -> None:
    """Write the parts of a cut as the cells of its points."""
    cells[cut.left_members, cut.tree] = cut.left
    cells[cut.right_members, cut.tree] = cut.right


def merge(cells: IntArray, cut: Cut) -> None:
    """Write the cell that a cut splits as the cell of its points."""
    cells[cut.left_members, cut.tree] = cut.parent
    cells[cut.right_members, cut.tree] = cut.parent


@njit(cache=True, nogil=True)
def _number_parts(tree, node, left, right, in_left, in_right, cell_of, cells):  # type: ignore[no-untyped-def]
    """Write the numbers of all cells and their parts; return how many numbers there are."""
    n_numbers = 1 + len(cell_of)
    for i in range(len(node)):
        parent = cell_of[tree[i], node[i]]
        one = parent if in_left[i] else EMPTY
        other = parent if in_right[i] else EMPTY
        if in_left[i] and in_right[i]:
            one, other = n_numbers, n_numbers + 1
            n_numbers += 2
        cell_of[tree[i], left[i]] = one
        cell_of[tree[i], right[i]] = other
        cells[i, 0], cells[i, 1], cells[i, 2] = parent, one, other
    return n_numbers


@njit(cache=True, nogil=True)
def _ancestors(births, parents, cells, state):  # type: ignore[no-untyped-def]
    """Return, for each cell, the nearest ancestor that the state has."""
    result = cells.copy()
    for i in range(len(result)):
        while births[result[i]] > state:
            result[i] = parents[result[i]]
    return result


@njit(cache=True, nogil=True)
def _follow(cuts: CutArrays, cells, cut_off):  # type: ignore[no-untyped-def]
    """Write each point's last cell with training points, and after how many cuts it leaves it."""
    for i in range(len(cuts.tree)):
        t = cuts.tree[i]
        middle = cuts.middle[i]
        parts = (
            (cuts.cells[i, 1], cuts.start[i], middle),
            (cuts.cells[i, 2], middle, cuts.end[i]),
        )
        for cell, start, end in parts:
            for k in range(start, end):
                point = cuts.order[t, k]
                if cell == EMPTY:
                    cut_off[point, t] = i + 1
                else:
                    cells[point, t] = cell

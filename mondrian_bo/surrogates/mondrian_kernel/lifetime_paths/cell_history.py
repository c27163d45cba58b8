"""The cells of a path and what became of them: which cell came from which, and when."""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_bo.array_types import IntArray
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cuts import EMPTY, CutArrays, CutSequence


class CellHistory:
    """The states of the cells with training points, from before the first cut on.

    State k has the cells after k cuts that split the training points of a cell. Cells are labelled
    as by :class:`CutSequence`, and stand in the order of their training points, in which the parts
    of a cell are neighbours at all times.

    Parameters
    ----------
    cuts : CutSequence
        The cuts.

    Attributes
    ----------
    state_of_position : int64 array of shape (n_cuts + 1,)
        The state after each number of cuts: others than those that count split other points only.
    births : int64 array of shape (n_labels,)
        The first state in which a cell is there.
    cut_off : int64 array of shape (n, M)
        After how many cuts each point is in a cell without training points, if it ever is; else
        more than there are.
    """

    def __init__(self, cuts: CutSequence) -> None:
        arrays = cuts.arrays
        n_trees, n_points = arrays.order.shape
        parent, left, right = arrays.labels.T
        counts = (left != EMPTY) & (right != EMPTY)
        self.state_of_position = np.append(0, np.cumsum(counts))
        n_states = int(self.state_of_position[-1])
        self.births = np.zeros(cuts.n_labels, dtype=np.int64)
        self._parents = np.zeros(cuts.n_labels, dtype=np.int64)
        place = np.full(cuts.n_labels, -1)
        place[1 : 1 + n_trees] = n_points * np.arange(n_trees)
        for label, start in ((left, arrays.start), (right, arrays.middle)):
            self.births[label[counts]] = np.arange(1, n_states + 1)
            self._parents[label[counts]] = parent[counts]
            place[label[counts]] = (n_points * arrays.tree + start)[counts]
        last = np.setdiff1d(np.arange(1, cuts.n_labels), parent[counts])
        self._last = last[np.argsort(place[last])]
        labels = cuts.first_labels()
        self.cut_off = np.full(labels.shape, len(cuts) + 1)
        _follow(arrays, labels, self.cut_off)
        # Places among the last cells: of a part of the point's last cell with training points.
        self._homes = np.searchsorted(place[self._last], place[labels])

    def n_cells(self, state: IntArray) -> IntArray:
        """Return how many cells a state, or each of several, has."""
        return np.asarray(self._homes.shape[1] + state)

    def cells(self, state: int) -> tuple[IntArray, IntArray]:
        """Return the cells of a state, and which of them the points are in.

        Returns
        -------
        cells : int64 array of shape (C,)
            Labels of the cells.
        places : int64 array of shape (n, M)
            The place among them of each point's cell; if that has no training points, of a cell
            that the point was in, or of a part of it, before it was cut off.
        """
        cells, groups = self.groups(self._last, state)
        return cells, groups[self._homes]

    def groups(self, cells: IntArray, state: int) -> tuple[IntArray, IntArray]:
        """Return which of some cells are parts of one cell of an earlier state.

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
            For each cell the place among them of the one it is part of.
        """
        found = _ancestors(self.births, self._parents, cells, state)
        is_first = np.append(True, found[1:] != found[:-1])[: len(found)]
        return found[is_first], np.cumsum(is_first) - 1


@njit(cache=True, nogil=True)
def _ancestors(births, parents, cells, state):  # type: ignore[no-untyped-def]
    """Go up from each cell until the state has it."""
    result = cells.copy()
    for i in range(len(result)):
        while births[result[i]] > state:
            result[i] = parents[result[i]]
    return result


@njit(cache=True, nogil=True)
def _follow(cuts: CutArrays, labels, cut_off):  # type: ignore[no-untyped-def]
    """Write the last cell with training points that each point is in, and when it is cut off."""
    for i in range(len(cuts.tree)):
        t = cuts.tree[i]
        middle = cuts.middle[i]
        parts = (
            (cuts.labels[i, 1], cuts.start[i], middle),
            (cuts.labels[i, 2], middle, cuts.end[i]),
        )
        for label, start, end in parts:
            for k in range(start, end):
                point = cuts.order[t, k]
                if label == EMPTY:
                    cut_off[point, t] = i + 1
                else:
                    labels[point, t] = label

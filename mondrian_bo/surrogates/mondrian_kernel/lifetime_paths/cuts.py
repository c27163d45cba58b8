"""The cuts of sampled partitions in the order of time: how cells split as the lifetime grows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.array_types import IntArray
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest
from mondrian_bo.trees.partition import arrange
from mondrian_bo.trees.tree import LEFT, NONE, RIGHT, ROOT

EMPTY = 0
"""The label of all cells without training points: their weight is always 0."""


class Cut(NamedTuple):
    """A cell splits in two, or two cells merge.

    Attributes
    ----------
    tree : int
        The partition that is cut.
    parent, left, right : int
        Labels of the cell and of its parts. A part without training points is ``EMPTY``, and the
        other one then keeps the label of the cell.
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
    """A sequence of cuts as arrays.

    Attributes
    ----------
    order : int32 array of shape (M, n)
        The points of each partition, those of each cell side by side.
    tree : int64 array of shape (n_cuts,)
        Which partition is cut.
    start, middle, end : int32 arrays of shape (n_cuts,)
        The left part holds the points from `start` to `middle`, the right part those to `end`.
    labels : int64 array of shape (n_cuts, 3)
        Labels of cell, left and right part.
    """

    order: NDArray[np.int32]
    tree: IntArray
    start: NDArray[np.int32]
    middle: NDArray[np.int32]
    end: NDArray[np.int32]
    labels: IntArray


class CutSequence:
    """The cuts of a forest that change a cell of the training points, by time.

    Parameters
    ----------
    forest : PartitionForest
        Partitions of training points and, after them, of other points.
    n_training : int
        Number of training points.

    Attributes
    ----------
    times : float64 array of shape (n_cuts,)
        When the cuts appear, in increasing order.
    n_labels : int
        Number of labels of all cells at all times, ``EMPTY`` included.
    """

    def __init__(self, forest: PartitionForest, n_training: int) -> None:
        trees = forest.arrays
        shape = trees.parent.shape
        self._order = np.empty((forest.n_trees, forest.n_points), dtype=np.int32)
        start, end = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int32)
        arrange(trees, self._order, start, end)
        # How many training points stand before each place.
        trained = np.zeros((forest.n_trees, forest.n_points + 1), dtype=np.int64)
        np.cumsum(self._order < n_training, axis=1, out=trained[:, 1:])
        used = np.arange(shape[1]) < trees.counters[:, :1]
        tree, node = np.nonzero(used & (trees.children[:, :, LEFT] != NONE))
        holds = trained[tree, end[tree, node]] > trained[tree, start[tree, node]]
        tree, node = tree[holds], node[holds]
        by_time = np.argsort(trees.split_time[tree, node], kind="stable")
        self._tree, node = tree[by_time], node[by_time]
        self.times = trees.split_time[self._tree, node]
        left = trees.children[self._tree, node, LEFT]
        right = trees.children[self._tree, node, RIGHT]
        self._start, self._middle = start[self._tree, left], end[self._tree, left]
        self._end = end[self._tree, right]
        in_left = trained[self._tree, self._middle] > trained[self._tree, self._start]
        in_right = trained[self._tree, self._end] > trained[self._tree, self._middle]
        self._labels = np.empty((len(node), 3), dtype=np.int64)
        label_of = np.zeros(shape, dtype=np.int64)
        roots = np.arange(forest.n_trees)
        label_of[roots, trees.counters[:, ROOT]] = 1 + roots
        self.n_labels = _label_parts(
            self._tree, node, left, right, in_left, in_right, label_of, self._labels
        )

    @property
    def arrays(self) -> CutArrays:
        """All cuts as arrays, for compiled functions."""
        return CutArrays(
            self._order, self._tree, self._start, self._middle, self._end, self._labels
        )

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, index: int) -> Cut:
        t = int(self._tree[index])
        start, middle, end = self._start[index], self._middle[index], self._end[index]
        parent, left, right = (int(label) for label in self._labels[index])
        return Cut(t, parent, left, right, self._order[t, start:middle], self._order[t, middle:end])

    def first_labels(self) -> IntArray:
        """Return the labels of all points before any cut, shape (n, M)."""
        n_trees, n_points = self._order.shape
        return np.tile(1 + np.arange(n_trees), (n_points, 1))

    def last_labels(self) -> IntArray:
        """Return the labels of all points after all cuts, shape (n, M)."""
        labels = self.first_labels()
        for i in range(len(self)):
            split(labels, self[i])
        return labels


def split(labels: IntArray, cut: Cut) -> None:
    """Write the labels of the parts of a cell."""
    labels[cut.left_members, cut.tree] = cut.left
    labels[cut.right_members, cut.tree] = cut.right


def merge(labels: IntArray, cut: Cut) -> None:
    """Write the label of the cell whose parts a cut separates."""
    labels[cut.left_members, cut.tree] = cut.parent
    labels[cut.right_members, cut.tree] = cut.parent


@njit(cache=True, nogil=True)
def _label_parts(tree, node, left, right, in_left, in_right, label_of, labels):  # type: ignore[no-untyped-def]
    """Give labels to the parts of all cells, cut after cut; return how many there are."""
    n_labels = 1 + len(label_of)
    for i in range(len(node)):
        parent = label_of[tree[i], node[i]]
        one = parent if in_left[i] else EMPTY
        other = parent if in_right[i] else EMPTY
        if in_left[i] and in_right[i]:
            one, other = n_labels, n_labels + 1
            n_labels += 2
        label_of[tree[i], left[i]] = one
        label_of[tree[i], right[i]] = other
        labels[i, 0], labels[i, 1], labels[i, 2] = parent, one, other
    return n_labels

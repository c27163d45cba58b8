"""The binary tree of a Mondrian partition: arrays of nodes, and their sampling.

A node is a box. It is cut at its split time, or it is a cell of the partition. The forests of this
library instantiate only the cuts that separate data (:mod:`mondrian_bo.trees.growth`); here all
cuts of the box are there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.trees.layout import LEFT, LOWER, NONE, RIGHT, UPPER


class PartitionNodes(NamedTuple):
    """The nodes of a partition, parents before children; the root is the first.

    Attributes
    ----------
    box : float64 array of shape (n_nodes, 2, d)
        Lower and upper corner of each node.
    split_time : float64 array of shape (n_nodes,)
        When the node was cut; infinity for a cell.
    dimension : int64 array of shape (n_nodes,)
        The dimension of the cut; -1 for a cell.
    threshold : float64 array of shape (n_nodes,)
        The location of the cut. Points at the location are on the left.
    children : int64 array of shape (n_nodes, 2)
        Left and right child; -1 for a cell.
    """

    box: FloatArray
    split_time: FloatArray
    dimension: IntArray
    threshold: FloatArray
    children: IntArray


class PartitionCuts(NamedTuple):
    """The cuts of a partition in the order of their times.

    Attributes
    ----------
    time : float64 array of shape (n_cuts,)
        When the cut appeared.
    dimension : int64 array of shape (n_cuts,)
        The dimension that it divides.
    threshold : float64 array of shape (n_cuts,)
        Its location.
    box : float64 array of shape (n_cuts, d, 2)
        Lower and upper end, in each dimension, of the cell that it divided.
    """

    time: FloatArray
    dimension: IntArray
    threshold: FloatArray
    box: FloatArray


NO_NODES = PartitionNodes(
    np.empty((0, 2, 0)), np.empty(0), np.empty(0, np.int64), np.empty(0), np.empty((0, 2), np.int64)
)
"""A partition that does not exist yet: the start of a sample."""


class Cut(NamedTuple):
    """A cut of a node: its time, dimension and location.

    `side_of_old` is the child that holds what was there before; NONE if the cut itself was there.
    """

    time: float
    dimension: int
    threshold: float
    side_of_old: int


class NodeList:
    """Nodes that are being made."""

    def __init__(self) -> None:
        self.box: list[FloatArray] = []
        self.split_time: list[float] = []
        self.dimension: list[int] = []
        self.threshold: list[float] = []
        self.children: list[list[int]] = []

    def add(self, box: FloatArray, parent: int, side: int) -> int:
        """Append a cell as the child of a node, if there is one, and return its index."""
        node = len(self.box)
        self.box.append(box)
        self.split_time.append(np.inf)
        self.dimension.append(NONE)
        self.threshold.append(0.0)
        self.children.append([NONE, NONE])
        if parent != NONE:
            self.children[parent][side] = node
        return node

    def cut(self, node: int, cut: Cut) -> None:
        """Cut a cell; its children are appended later."""
        self.split_time[node] = cut.time
        self.dimension[node] = cut.dimension
        self.threshold[node] = cut.threshold

    def arrays(self) -> PartitionNodes:
        """Return the nodes as arrays."""
        return PartitionNodes(
            np.array(self.box),
            np.array(self.split_time),
            np.array(self.dimension, dtype=np.int64),
            np.array(self.threshold),
            np.array(self.children, dtype=np.int64),
        )


def halves_of(box: FloatArray, dimension: int, threshold: float) -> tuple[FloatArray, FloatArray]:
    """Return the two boxes that a cut makes of one."""
    left, right = box.copy(), box.copy()
    left[UPPER, dimension] = right[LOWER, dimension] = threshold
    return left, right


def grow(
    old: PartitionNodes,
    box: FloatArray,
    rates: FloatArray,
    times: tuple[float, float],
    rng: np.random.Generator,
) -> PartitionNodes:
    """Sample a partition of a box, given its restriction to a smaller box up to an earlier time.

    This is the conditional Mondrian process (Balog2016thesis, section 1.3; Balog2016, section 2.4).
    A cut that misses the old part of a node competes with the cut that the node has. Beyond the
    old lifetime, and where there is no old part, cuts are those of a Mondrian process, as the
    exponential distribution has no memory. O(1) per node of the result.

    Parameters
    ----------
    old : PartitionNodes
        What is known; ``NO_NODES`` for nothing.
    box : float64 array of shape (2, d)
        Contains the box of `old`.
    rates : float64 array of shape (d,)
        The rate of cuts for each unit of the extent of a dimension.
    times : tuple of two floats
        The lifetime of `old` and that of the result, which is not smaller.
    rng : numpy Generator
        Source of the cuts.

    Returns
    -------
    PartitionNodes
        The partition of `box` up to the later time.
    """
    known_until, lifetime = times
    nodes = NodeList()
    # Box, time, node of `old` or NONE, parent and side.
    waiting = [(box, 0.0, 0 if len(old.box) > 0 else NONE, NONE, LEFT)]
    while waiting:
        box, time, source, parent, side = waiting.pop()
        cut = None
        if source != NONE:
            own_time = float(old.split_time[source])
            cut = _first_cut(box, old.box[source], rates, (time, min(own_time, known_until)), rng)
            if cut is None and own_time < np.inf:
                cut = Cut(own_time, int(old.dimension[source]), float(old.threshold[source]), NONE)
            elif cut is None:
                source, time = NONE, known_until
        if source == NONE:
            nothing = box[[LOWER, LOWER]]
            cut = _first_cut(box, nothing, rates, (time, lifetime), rng)
        node = nodes.add(box, parent, side)
        if cut is not None:
            nodes.cut(node, cut)
            halves = halves_of(box, cut.dimension, cut.threshold)
            for half, where in zip(halves, (LEFT, RIGHT), strict=True):
                following = NONE
                if source != NONE and cut.side_of_old == NONE:
                    following = int(old.children[source, where])
                elif source != NONE and cut.side_of_old == where:
                    following = source
                waiting.append((half, cut.time, following, node, where))
    return nodes.arrays()


def _first_cut(
    box: FloatArray,
    inner: FloatArray,
    rates: FloatArray,
    times: tuple[float, float],
    rng: np.random.Generator,
) -> Cut | None:
    """Draw the first cut of a box that misses an inner box, or None if there is none in time."""
    start, end = times
    # A clock for each part of the box, below and above the inner one (Balog2016, Figure 2).
    clocks = rates * np.abs(box - inner)
    total = float(clocks.sum())
    time = start + rng.exponential() / total if total > 0.0 else np.inf
    if not time < end:
        return None
    first = int(rng.choice(clocks.size, p=(clocks / total).ravel()))
    part, dimension = divmod(first, clocks.shape[1])
    low, high = sorted((float(inner[part, dimension]), float(box[part, dimension])))
    return Cut(time, dimension, rng.uniform(low, high), RIGHT if part == LOWER else LEFT)


def restricted(old: PartitionNodes, box: FloatArray, lifetime: float) -> PartitionNodes:
    """Return the nodes of the partition of a smaller box, at an earlier time; O(nodes)."""
    nodes = NodeList()
    waiting = [(box, 0, NONE, LEFT)]
    while waiting:
        box, source, parent, side = waiting.pop()
        while old.split_time[source] <= lifetime:
            cut = Cut(
                float(old.split_time[source]),
                int(old.dimension[source]),
                float(old.threshold[source]),
                NONE,
            )
            if box[LOWER, cut.dimension] < cut.threshold < box[UPPER, cut.dimension]:
                break
            # The cut misses the box.
            side_of_box = RIGHT if cut.threshold <= box[LOWER, cut.dimension] else LEFT
            source = int(old.children[source, side_of_box])
        node = nodes.add(box, parent, side)
        if old.split_time[source] <= lifetime:
            nodes.cut(node, cut)
            halves = halves_of(box, cut.dimension, cut.threshold)
            for half, where in zip(halves, (LEFT, RIGHT), strict=True):
                waiting.append((half, int(old.children[source, where]), node, where))
    return nodes.arrays()

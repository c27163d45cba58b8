"""Pictures of partitions and of their trees. Matplotlib is imported when it is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_partition.nodes import PartitionCuts, PartitionNodes
from mondrian_bo.trees.layout import LEFT, NONE, RIGHT

_WIDEST, _NARROWEST = 2.5, 0.5
"""Widths of the first and of the last possible cut, in points. Our choice, for the eye."""


def _axis(axis: Any) -> Any:
    if axis is not None:
        return axis
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def draw_partition(
    cuts: PartitionCuts,
    bounds: FloatArray,
    lifetime: float,
    axis: Any,
    times: bool,
    line_options: dict[str, Any],
) -> Any:
    """Draw cuts in one or two dimensions; see :meth:`MondrianPartition.draw`."""
    n_features = len(bounds)
    if n_features > 2:
        raise ValueError(f"only one or two features can be drawn, the partition has {n_features}")
    axis = _axis(axis)
    ends = bounds if n_features == 2 else np.array([bounds[0], [0.0, lifetime]])
    axis.set(xlim=ends[0], ylim=ends[1])
    for time, dimension, threshold, box in zip(*cuts, strict=True):
        late = time / lifetime
        line: dict[str, Any] = {"color": "C0", "solid_capstyle": "butt"}
        line["linewidth"] = _WIDEST + late * (_NARROWEST - _WIDEST)
        line |= line_options
        across = np.array([time, lifetime]) if n_features == 1 else box[1 - dimension]
        along = np.full(2, threshold)
        axis.plot(*((along, across) if dimension == 0 else (across, along)), **line)
        if times:
            middle = float(across.mean())
            where = (threshold, middle) if dimension == 0 else (middle, threshold)
            background = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
            axis.text(*where, f"{time:.2f}", ha="center", va="center", bbox=background)
    return axis


def draw_tree(
    nodes: PartitionNodes, lifetime: float, axis: Any, line_options: dict[str, Any]
) -> Any:
    """Draw the tree of the cuts over time; see :meth:`MondrianPartition.draw_tree`."""
    axis = _axis(axis)
    line = {"color": "C0", "linewidth": 1.0} | line_options
    # Leaves side by side, a node in the middle of its children. Children come after parents.
    place = np.zeros(len(nodes.split_time))
    n_leaves = 0
    waiting = [0]
    while waiting:
        node = waiting.pop()
        if nodes.dimension[node] == NONE:
            place[node] = n_leaves
            n_leaves += 1
        else:
            waiting += [int(nodes.children[node, RIGHT]), int(nodes.children[node, LEFT])]
    for node in range(len(place) - 1, -1, -1):
        if nodes.dimension[node] != NONE:
            place[node] = place[nodes.children[node]].mean()
    begin = np.zeros(len(place))
    end = np.minimum(nodes.split_time, lifetime)
    for node, (left, right) in enumerate(nodes.children):
        if left != NONE:
            begin[left] = begin[right] = end[node]
            axis.plot(place[[left, right]], [end[node]] * 2, **line)
    axis.vlines(place, begin, end, colors=line["color"], linewidth=line["linewidth"])
    axis.set(xlim=(-0.5, n_leaves - 0.5), ylim=(lifetime, 0.0), xticks=[], ylabel="time")
    return axis

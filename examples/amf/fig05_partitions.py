"""Figure 5 of Mourtada2021: unrestricted and restricted Mondrian partitions of a few samples."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from _common import arguments, save, say

from mondrian_bo.surrogates import MondrianPartition

UNIT = np.array([[0.0, 1.0], [0.0, 1.0]])


def cuts_of_occupied_cells(partition, X, restricted):
    """Yield (dimension, location, box, whether both sides have samples) of the cuts that are kept.

    Cells with one sample are not cut. In the restricted partition, cuts that leave a side empty are
    removed, and the cuts after them go on to the end of the larger cell.
    """
    nodes = partition.nodes
    waiting = [(0, np.arange(len(X)), partition.bounds)]
    while waiting:
        node, members, box = waiting.pop()
        if len(members) < 2 or nodes.dimension[node] < 0:
            continue
        dimension, threshold = nodes.dimension[node], nodes.threshold[node]
        left = X[members, dimension] <= threshold
        parts = members[left], members[~left]
        divides = all(map(len, parts))
        boxes = box.copy(), box.copy()
        if divides or not restricted:
            boxes[0][dimension, 1] = boxes[1][dimension, 0] = threshold
            yield dimension, threshold, box, divides
        waiting += zip(nodes.children[node], parts, boxes, strict=True)


def main():
    options = arguments(__file__, __doc__, samples=16, seed=6)
    X = np.random.default_rng(options.seed).uniform(0.05, 0.95, size=(options.samples, 2))
    partition = MondrianPartition.sample(UNIT, 100.0, random_state=options.seed)
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained")
    for axis, restricted in zip(axes, (False, True), strict=True):
        cuts = list(cuts_of_occupied_cells(partition, X, restricted))
        for dimension, threshold, box, divides in cuts:
            line = np.full(2, threshold), box[1 - dimension]
            colour = "k" if divides else "C0"
            axis.plot(*(line if dimension == 0 else line[::-1]), color=colour, linewidth=1.2)
        axis.plot(*X.T, "ko", markersize=5)
        name = "restricted" if restricted else "unrestricted"
        axis.set(
            xlim=UNIT[0],
            ylim=UNIT[1],
            xticks=[],
            yticks=[],
            aspect="equal",
            title=f"{name}: {len(cuts)} cuts",
        )
        say(f"{name}: {len(cuts)} cuts for {len(X)} samples")
    save(figure, options.output)


if __name__ == "__main__":
    main()

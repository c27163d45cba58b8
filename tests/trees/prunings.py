"""Slow and plain counterparts of the aggregation over prunings, shared by its tests."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from trees.oracles import one_tree

from mondrian_bo.surrogates.amf.forest import AggregatedForest
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.trees.aggregation_nodes import REAL
from mondrian_bo.trees.layout import LEFT, N_NODES, NONE, RIGHT, ROOT
from mondrian_bo.trees.tree import NODE_FIELDS

NO_RATES = np.empty(0)
"""Predictions follow the existing splits only."""


def unit_box(d):
    return np.stack([np.zeros(d), np.ones(d)])


def make_forest(d, *, n_trees=1, seed=0, n_classes=REAL, restricted=True, **options):
    box = None if restricted else unit_box(d)
    sequence = np.random.SeedSequence(seed)
    return AggregatedForest(Ensemble(n_trees, d, sequence), n_classes=n_classes, box=box, **options)


def learn(forest, points, targets, *, rates=None, sample_weights=None, steps=None, n_jobs=1):
    """Let a forest learn points, shape (n, d): one by one, or with calls that end at `steps`."""
    n, d = points.shape
    rates = np.ones((1, d)) if rates is None else np.asarray(rates, dtype=float)[None]
    start = 0
    for end in range(1, n + 1) if steps is None else [*steps, n]:
        weights = None if sample_weights is None else sample_weights[start:end]
        forest.extend(points[None, start:end], targets[start:end], rates, weights, n_jobs)
        start = end
    return forest


def draw_targets(rng, n, n_classes):
    """Return random targets, of the type that a forest stores."""
    if n_classes == REAL:
        return rng.normal(size=n)
    return rng.integers(n_classes, size=n).astype(np.int32)


def arrays(forest):
    """Return a copy of a forest's content, without spare capacity, as a flat dictionary.

    Nodes are in preorder, because their numbers depend on how a stream is divided into calls.
    """
    content = {
        "points": forest.points.copy(),
        "targets": forest.targets.copy(),
        "sample_weights": forest.sample_weights.copy(),
        "trace": forest.trace.copy(),
    }
    for t in range(forest.n_trees):
        tree = one_tree(forest, t)
        nodes = preorder_of(tree)
        fields = tree._asdict()
        fields |= {name: fields[name][nodes] for name in (*NODE_FIELDS, "box")}
        number = np.empty(len(nodes) + 1, dtype=np.int32)
        number[nodes], number[NONE] = np.arange(len(nodes)), NONE
        fields |= {name: number[fields[name]] for name in ("parent", "row")}
        inner = fields["children"][:, LEFT] != NONE
        fields["children"][inner] = number[fields["children"][inner]]
        fields["counters"] = np.delete(tree.counters, ROOT)
        content |= {f"{t}.{name}": field for name, field in fields.items()}
        for name, field in forest.node_stats._asdict().items():
            content[f"{t}.{name}"] = field[t, nodes]
    return content


def without_trace(content):
    return {name: field for name, field in content.items() if name != "trace"}


def preorder_of(tree):
    """Return all nodes, parents before children."""
    found, pending = [], [int(tree.counters[ROOT])]
    while pending:
        node = pending.pop()
        found.append(node)
        if tree.children[node, LEFT] != NONE:
            pending += [int(tree.children[node, RIGHT]), int(tree.children[node, LEFT])]
    assert sorted(found) == list(range(tree.counters[N_NODES]))
    return found


def path_to(tree, x):
    """Return the nodes from the root to the leaf that holds x."""
    path = [int(tree.counters[ROOT])]
    while tree.children[path[-1], LEFT] != NONE:
        node = path[-1]
        side = LEFT if x[tree.dimension[node]] <= tree.threshold[node] else RIGHT
        path.append(int(tree.children[node, side]))
    return path


class History(NamedTuple):
    """Losses and forecasts of the nodes of a tree for a stream of targets: dictionaries by node."""

    losses: dict
    forecasts: dict  # of the next target: a mean, or probabilities
    masses: dict
    variances: dict  # of real targets


def history(tree, points, targets, sample_weights, n_classes, dirichlet):
    """Let every node of a grown tree forecast, in turn, the targets of the points in its block.

    Follows the definitions of Mourtada2021 (equations 4 and 5) and uses only the tree's splits.
    """
    sample_weights = np.ones(len(targets)) if sample_weights is None else sample_weights
    nodes = preorder_of(tree)
    losses = dict.fromkeys(nodes, 0.0)
    masses = dict.fromkeys(nodes, 0.0)
    counts = dict.fromkeys(nodes, 0)
    sums = {node: [0.0] * max(n_classes, 1) for node in nodes}

    def forecast(node, inherited):
        if n_classes == REAL:
            return sums[node][0] / masses[node] if masses[node] > 0.0 else inherited
        unit = 1.0 / (masses[node] + n_classes * dirichlet)
        return [unit * (count + dirichlet) for count in sums[node]]

    for x, target, weight in zip(points, targets.tolist(), sample_weights.tolist(), strict=True):
        inherited = target  # the first target has no loss
        for node in path_to(tree, x):
            counts[node] += 1
            inherited = forecast(node, inherited)
            if n_classes == REAL:
                losses[node] += weight * (target - inherited) ** 2
                sums[node][0] += weight * target
                masses[node] += weight
            else:
                losses[node] -= weight * math.log(inherited[target])
                sums[node][target] += weight
                masses[node] = sum(sums[node])
    forecasts, variances = {}, {}
    for node in nodes:
        parent = int(tree.parent[node])
        forecasts[node] = forecast(node, forecasts.get(parent, 0.0))
        if n_classes == REAL:
            # The mean loss without the first target's share, with one more sample of the mean
            # weight, whose loss is the parent's variance; above the root it is the mean loss of all
            # targets.
            mean = losses[node] / masses[node] if masses[node] > 0.0 else 0.0
            above = mean if parent == NONE else variances[parent]
            others = (counts[node] - 1) * mean
            variances[node] = (others + above) / (counts[node] + 1) if masses[node] > 0.0 else above
    return History(losses, forecasts, masses, variances)


def prunings(tree, node=None):
    """Return all prunings below a node: pairs of their leaves and of ||T||.

    ||T|| is the number of nodes of T that are not leaves of the tree.
    """
    node = int(tree.counters[ROOT]) if node is None else node
    if tree.children[node, LEFT] == NONE:
        return [((node,), 0)]
    left, right = (prunings(tree, int(child)) for child in tree.children[node])
    deeper = [(one + two, 1 + m + n) for one, m in left for two, n in right]
    return [((node,), 1), *deeper]


class Posterior(NamedTuple):
    """The prunings of a tree with their weights, which add up to 1."""

    leaves: list
    weights: np.ndarray
    log_average: float  # logarithm of the averaged weight, before normalisation

    def stops(self, path):
        """Return the probability that a pruning ends at each node of a path from the root."""
        return [
            sum(w for leaves, w in zip(self.leaves, self.weights, strict=True) if node in leaves)
            for node in path
        ]


def posterior(tree, losses, step):
    """Weight all prunings with ``2^-||T|| exp(-step L(T))``."""
    found = prunings(tree)
    assert math.isclose(math.fsum(2.0**-size for _, size in found), 1.0, rel_tol=1e-12)
    logs = np.array(
        [
            -size * math.log(2.0) - step * math.fsum(losses[leaf] for leaf in leaves)
            for leaves, size in found
        ]
    )
    log_average = float(np.logaddexp.reduce(logs))
    return Posterior(
        [frozenset(leaves) for leaves, _ in found], np.exp(logs - log_average), log_average
    )


def cheapest(tree, losses, price=0.0):
    """Return the least ``sum of the losses of T's leaves + price |T|`` over all prunings T."""
    best = {}
    for node in reversed(preorder_of(tree)):
        best[node] = losses[node]
        if tree.children[node, LEFT] != NONE:
            left, right = (int(child) for child in tree.children[node])
            best[node] = min(best[node], best[left] + best[right])
        best[node] += price
    return best[int(tree.counters[ROOT])]

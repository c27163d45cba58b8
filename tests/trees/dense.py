"""References: the hierarchical Gaussian as one dense normal distribution, and Algorithm 5.

Both are those of Lakshminarayanan2016, in numpy, without messages.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import multivariate_normal
from trees.oracles import children_of, leaf_of, one_tree, points_of

from mondrian_bo.trees.layout import LEFT, LOWER, NONE, RIGHT, ROOT, UPPER
from mondrian_bo.trees.predict import BRIDGE, EMPIRICAL, PAPER, REMAINING

RULES = (REMAINING, PAPER, EMPIRICAL)
LEVELS = (1.0 / 6.0, 0.5, 5.0 / 6.0)


class DenseTree:
    """Prior and posterior of all node means of one tree, by dense linear algebra.

    Means are sums of independent increments: mu = mu_H + A e, where A[j, k] = 1 if k is an ancestor
    of j or j itself, and e_j has variance phi_j (section 3). Targets are the means of their leaves
    plus noise (1).
    """

    def __init__(self, forest, t=0, *, mean_prior, gamma_1):
        self.tree, self.points = one_tree(forest, t), points_of(forest, t)
        self.targets, self.lifetime = forest.targets, forest.lifetime
        self.mean_prior, self.gamma_1 = mean_prior, gamma_1
        self.gamma_2, noise = forest.hyperparameters
        self.noise = gamma_1 * noise
        n_nodes = len(self.tree.parent)
        above = np.zeros((n_nodes, n_nodes))
        phi = np.empty(n_nodes)
        for node in range(n_nodes):
            parent = self.tree.parent[node]
            phi[node] = self.spent(self.tree.split_time[node]) - (
                0.0 if parent == NONE else self.spent(self.tree.split_time[parent])
            )
            ancestor = node
            while ancestor != NONE:
                above[node, ancestor] = 1.0
                ancestor = self.tree.parent[ancestor]
        self.leaves = np.array([leaf_of(self.tree, x) for x in self.points])
        self.prior = above @ np.diag(phi) @ above.T
        cross = self.prior[:, self.leaves]
        self.target_covariance = cross[self.leaves] + self.noise * np.eye(len(self.leaves))
        gain = np.linalg.solve(self.target_covariance, cross.T).T
        self.mean = mean_prior + gain @ (self.targets - mean_prior)
        self.covariance = self.prior - gain @ cross.T

    def spent(self, time):
        """Return the prior variance accumulated from time 0 to `time`."""
        return self.gamma_1 * (expit(self.gamma_2 * time) - 0.5)

    def log_likelihood(self):
        """Return the log marginal likelihood of the targets."""
        shift = np.full(len(self.targets), self.mean_prior)
        return multivariate_normal(shift, self.target_covariance).logpdf(self.targets)

    def members(self, node):
        """Return the targets below a node."""
        below = [node]
        for other in below:
            below.extend(children_of(self.tree, other))
        return self.targets[np.isin(self.leaves, below)]

    def at_node(self, node, rule):
        """Return mean and variance of a target at a node."""
        if rule == EMPIRICAL:
            return self.members(node).mean(), self.members(node).var() + self.noise
        return self.mean[node], self.covariance[node, node] + self.noise

    def before(self, node, rule):
        """Return mean and variance of a target that branches off right before a node."""
        if self.tree.parent[node] == NONE:
            # Above the root there is only the prior, whatever the rule.
            return self.mean_prior, self.spent(self.lifetime) + self.noise
        mean, variance = self.at_node(node, rule)
        if rule == REMAINING:
            time = self.tree.split_time[node]
            variance = variance + self.spent(self.lifetime) - self.spent(time)
        return mean, variance

    def path(self, x, rates):
        """Return the rows (weight, node, stays) of Algorithm 5 at x, from the root down.

        With its weight x stays at the node (a leaf), or branches off right before it.
        """
        tree, rows, unseparated = self.tree, [], 1.0  # line 3
        node, parent_time = int(tree.counters[ROOT]), 0.0
        while True:
            delta = tree.split_time[node] - parent_time  # line 5
            above = np.maximum(x - tree.box[node, UPPER], 0.0)
            below = np.maximum(tree.box[node, LOWER] - x, 0.0)
            eta = float(np.sum(rates * (above + below)))  # line 5
            if eta > 0.0:  # line 7
                separated = 1.0 - math.exp(-delta * eta)  # line 6
                rows.append((unseparated * separated, node, False))  # line 8
                unseparated *= 1.0 - separated  # line 13
            if tree.children[node, LEFT] == NONE:
                return [*rows, (unseparated, node, True)]  # lines 9 to 11
            side = LEFT if x[tree.dimension[node]] <= tree.threshold[node] else RIGHT
            parent_time = tree.split_time[node]
            node = int(tree.children[node, side])

    def components(self, x, rates, rule):
        """Return the mixture at x as rows (weight, mean, variance), from the root down."""
        return np.array(
            [
                (weight, *(self.at_node(node, rule) if stays else self.before(node, rule)))
                for weight, node, stays in self.path(x, rates)
            ]
        )


class BridgedTree(DenseTree):
    """A tree with a new node between a node and its parent, as one dense normal distribution."""

    def with_new_node(self, node, time):
        """Return mean and variance of a target whose path leaves the one to `node` at `time`.

        The new node's mean has the covariance with every other mean that they share up to it, by
        definition of the prior.
        """
        covariance = np.empty(len(self.prior))
        below = self.below_node(node)
        for other in range(len(self.prior)):
            shared = other
            while shared not in self.above_node(node):
                shared = self.tree.parent[shared]
                if shared == NONE:
                    break
            common = 0.0 if shared == NONE else self.spent(self.tree.split_time[shared])
            covariance[other] = self.spent(time) if other in below else min(common, np.inf)
        cross = covariance[self.leaves]
        gain = np.linalg.solve(self.target_covariance, cross)
        mean = self.mean_prior + gain @ (self.targets - self.mean_prior)
        # The new leaf goes on from the new node to the lifetime, and its target has noise.
        return mean, self.spent(self.lifetime) - gain @ cross + self.noise

    def above_node(self, node):
        """Return the proper ancestors of a node."""
        found = set()
        while self.tree.parent[node] != NONE:
            node = int(self.tree.parent[node])
            found.add(node)
        return found

    def below_node(self, node):
        """Return the nodes of a node's subtree, itself included."""
        found = [node]
        for other in found:
            found.extend(children_of(self.tree, other))
        return set(found)

    def bridges(self, x, rates):
        """Yield (weight, node, parent's time, span, rate) of branch-offs, and the leaf at the end.

        The leaf has no rate.
        """
        tree, unseparated, parent_time = self.tree, 1.0, 0.0
        node = int(tree.counters[ROOT])
        while True:
            span = tree.split_time[node] - parent_time
            outside = np.maximum(x - tree.box[node, UPPER], 0.0)
            outside = outside + np.maximum(tree.box[node, LOWER] - x, 0.0)
            rate = float(rates @ outside)
            if rate > 0.0:
                separated = 1.0 - math.exp(-span * rate)
                yield unseparated * separated, node, parent_time, span, rate
                unseparated *= 1.0 - separated
            if tree.children[node, LEFT] == NONE:
                yield unseparated, node, parent_time, span, None
                return
            parent_time = tree.split_time[node]
            side = LEFT if x[tree.dimension[node]] <= tree.threshold[node] else RIGHT
            node = int(tree.children[node, side])

    def components(self, x, rates, rule):
        """Return the mixture at x, of three quantiles for each branch-off if there are bridges."""
        if rule != BRIDGE:
            return super().components(x, rates, rule)
        rows = []
        for weight, node, parent_time, span, rate in self.bridges(x, rates):
            if rate is None:
                rows.append((weight, *self.at_node(node, REMAINING)))
                continue
            for level in LEVELS:
                time = parent_time - math.log(1.0 - level * (1.0 - math.exp(-span * rate))) / rate
                rows.append((weight / 3.0, *self.with_new_node(node, time)))
        return np.array(rows)

    def exact_moments(self, x, rates):
        """Return the moments of the distribution that the three quantiles approximate."""
        first = second = 0.0
        for weight, node, parent_time, span, rate in self.bridges(x, rates):
            if rate is None:
                mean, variance = self.at_node(node, REMAINING)
                first += weight * mean
                second += weight * (variance + mean**2)
                continue

            def at_level(level, power, node=node, start=parent_time, span=span, rate=rate):
                time = start - math.log(1.0 - level * (1.0 - math.exp(-span * rate))) / rate
                mean, variance = self.with_new_node(node, time)
                return mean if power == 1 else variance + mean**2

            first += weight * quad(at_level, 0.0, 1.0, args=(1,), limit=30)[0]
            second += weight * quad(at_level, 0.0, 1.0, args=(2,), limit=30)[0]
        return first, second - first**2


def moments(rows):
    """Return mean and variance of a mixture with rows (weight, mean, variance)."""
    weight, mean, variance = rows.T
    centre = weight @ mean
    return centre, weight @ (variance + (mean - centre) ** 2)


def probes(points, n, rng):
    """Return points to predict at: data, between, right beside, outside and far away."""
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    inside = rng.uniform(low, high, size=(n, points.shape[1]))
    around = rng.uniform(low - span, high + span, size=(n, points.shape[1]))
    beside = points[rng.integers(len(points), size=n)] + 1e-3 * span * rng.standard_normal(
        (n, points.shape[1])
    )
    far = np.stack([low - 100.0 * span, high + 1000.0 * span])
    return np.concatenate([points[:n], inside, around, beside, far])

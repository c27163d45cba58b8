"""Reference: affine functions on a Mondrian tree as one dense Gaussian process, in numpy.

The function of node j is the trend plus the increments of its ancestors and of itself. An increment
of node k is a value at the centre of the box of k plus slopes, so its covariance between two points
is known; what the functions of two nodes share is the trend and the increments of common ancestors.
"""

from __future__ import annotations

import numpy as np
from trees.dense import DenseTree
from trees.oracles import leaf_of, one_tree, points_of

from mondrian_bo.trees.affine_messages import TREND
from mondrian_bo.trees.layout import LOWER, NONE, ROOT, UPPER
from mondrian_bo.trees.predict import REMAINING


class DenseAffineTree(DenseTree):
    """Prior and posterior of the affine functions of one tree, by dense linear algebra."""

    def __init__(self, forest, t=0, *, mean_prior, gamma_1):
        self.tree, self.points = one_tree(forest, t), points_of(forest, t)
        self.targets, self.lifetime = forest.targets, forest.lifetime
        self.mean_prior, self.gamma_1 = mean_prior, gamma_1
        self.gamma_2, noise, slope = forest.hyperparameters
        self.noise = gamma_1 * noise
        self.scales = slope * forest.scales
        tree = self.tree
        self.centres = (tree.box[:, LOWER] + tree.box[:, UPPER]) / 2.0
        self.paths, self.phi = [], []
        for node in range(len(tree.parent)):
            path, parent = [node], tree.parent[node]
            before = 0.0 if parent == NONE else self.spent(tree.split_time[parent])
            self.phi.append(self.spent(tree.split_time[node]) - before)
            while tree.parent[path[-1]] != NONE:
                path.append(int(tree.parent[path[-1]]))
            self.paths.append(set(path))
        self.leaves = [leaf_of(tree, x) for x in self.points]
        known = list(zip(self.leaves, self.points, strict=True))
        self.known = known
        self.target_covariance = self.covariances(known, known) + self.noise * np.eye(len(known))

    def covariance_between(self, node, x, other, y):
        """Return the prior covariance of two functions: of a node at x, of another at y.

        The node ``NONE`` is the trend.
        """
        root = int(self.tree.counters[ROOT])

        def features(k):
            return self.scales * (x - self.centres[k]), self.scales * (y - self.centres[k])

        one, two = features(root)
        total = self.gamma_1 * TREND * (1.0 + one @ two)
        if NONE in (node, other):
            return total
        for k in self.paths[node] & self.paths[other]:
            one, two = features(k)
            slopes = one @ two if self.tree.size[k] > 1 else 0.0
            total += self.phi[k] * (1.0 + slopes)
        return total

    def covariances(self, ones, others):
        """Return the matrix of the covariances of pairs (node, x)."""
        return np.array([[self.covariance_between(*a, *b) for b in others] for a in ones])

    def posterior(self, node, x):
        """Return mean and variance of the function of a node at x."""
        cross = self.covariances([(node, x)], self.known)[0]
        gain = np.linalg.solve(self.target_covariance, cross)
        mean = self.mean_prior + gain @ (self.targets - self.mean_prior)
        return mean, self.covariance_between(node, x, node, x) - gain @ cross

    def components(self, x, rates, rule):
        """Return the mixture at x as rows (weight, mean, variance), from the root down."""
        rows = []
        for weight, node, stays in self.path(x, rates):
            further = 0.0
            source = node
            if not stays and self.tree.parent[node] == NONE:
                source, further = NONE, self.spent(self.lifetime)
            elif not stays and rule == REMAINING:
                further = self.spent(self.lifetime) - self.spent(self.tree.split_time[node])
            mean, variance = self.posterior(source, x)
            rows.append((weight, mean, variance + further + self.noise))
        return np.array(rows)

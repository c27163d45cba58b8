"""Weights that grow along a stream discount earlier samples (docs/how-to/drift.md)."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo.surrogates import AMFRegressor

FACTOR = 0.9
"""What remains of a sample's influence after each later sample."""


class DiscountedNode:
    """A node's forecaster and its loss, with sums that are discounted at each sample."""

    def __init__(self):
        self.mass, self.total, self.loss = 0.0, 0.0, 0.0

    def fade(self):
        self.mass, self.total, self.loss = (FACTOR * v for v in (self.mass, self.total, self.loss))

    def learn(self, target, inherited):
        """Learn a target; return the forecast of it."""
        forecast = self.total / self.mass if self.mass > 0.0 else inherited
        self.loss += (target - forecast) ** 2
        self.mass, self.total = self.mass + 1.0, self.total + target
        return forecast


@pytest.mark.parametrize("step", [0.05, 0.5])
def test_growing_weights_are_discounted_sums(step):
    """All points are one of two: a tree is a root with two leaves, whose sums are simple."""
    rng = np.random.default_rng(0)
    side = rng.integers(2, size=60)
    y = (
        np.where(side == 0, 1.0, -1.0)
        + np.where(np.arange(60) < 30, 0.0, 3.0)
        + rng.normal(size=60)
    )
    root, leaves = DiscountedNode(), [DiscountedNode(), DiscountedNode()]
    for k, target in zip(side, y, strict=True):
        for node in (root, *leaves):
            node.fade()
        # Before the first target of all, any forecast is the same for all prunings.
        leaves[k].learn(target, root.learn(target, target))
    # The root's share among the prunings (Mourtada2021, equations 6 and 7).
    gap = step * (root.loss - leaves[0].loss - leaves[1].loss)
    share = 1.0 / (1.0 + np.exp(gap))
    means = np.array([leaf.total / leaf.mass for leaf in leaves])
    expected = share * root.total / root.mass + (1.0 - share) * means

    weights = FACTOR ** -np.arange(60.0)
    # Losses are weighted, too: the last sample has the largest weight, and the weight 1 above.
    forest = AMFRegressor(3, step=step / weights[-1], random_state=0)
    forest.partial_fit(side[:, None].astype(float), y, sample_weight=weights)
    found = forest.predict([[0.0], [1.0]])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    plain = AMFRegressor(3, step=step, random_state=0).partial_fit(side[:, None].astype(float), y)
    assert np.all(np.abs(plain.predict([[0.0], [1.0]]) - expected) > 0.2)


def test_means_do_not_depend_on_the_scale_of_weights():
    """The adaptive step scales with the losses, so weights may begin and end anywhere."""
    rng = np.random.default_rng(1)
    X, y, weights = rng.random((300, 2)), rng.normal(size=300), 1.01 ** np.arange(300)
    found = []
    for scale in (1.0, 1e-6, 1e-12):
        forest = AMFRegressor(5, stacking=False, random_state=0)
        forest.partial_fit(X, y, sample_weight=scale * weights)
        found.append(forest.predict(X[:50] + 0.01))
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=1e-9)


def test_growing_weights_follow_a_shift_of_the_targets():
    rng = np.random.default_rng(2)
    X = rng.random((800, 2))
    y = np.where(np.arange(800) < 600, 1.0, -1.0) * X[:, 0] + 0.01 * rng.normal(size=800)
    Q = rng.random((200, 2))
    errors = []
    for factor in (1.0, 1.02):
        forest = AMFRegressor(random_state=0)
        forest.partial_fit(X, y, sample_weight=factor ** np.arange(800))
        errors.append(np.mean(np.abs(forest.predict(Q) + Q[:, 0])))
    assert errors[1] < 0.2 * errors[0]

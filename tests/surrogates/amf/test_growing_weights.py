"""Weights that grow along a stream discount earlier samples (docs/how-to/drift.md)."""

from __future__ import annotations

import copy

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


@pytest.mark.parametrize("stacking", [False, True])
@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e6])
def test_distributions_do_not_depend_on_the_scale_of_weights(scale, stacking):
    """Weights that are all equal are those of a forest without weights."""
    rng = np.random.default_rng(3)
    X, Q = rng.random((300, 2)), rng.random((50, 2)) + 0.05
    # Equal targets at first: the adaptive rate begins where they differ.
    y = np.where(np.arange(300) < 10, 0.0, np.sin(6 * X[:, 0]) + 0.2 * rng.normal(size=300))
    plain, weighted = (AMFRegressor(5, stacking=stacking, random_state=0) for _ in range(2))
    for part in (slice(0, 12), slice(12, 300)):
        plain.partial_fit(X[part], y[part])
        weighted.partial_fit(X[part], y[part], sample_weight=np.full(300, scale)[part])
        logs = plain.logpdf(Q, np.zeros(50))
        np.testing.assert_allclose(weighted.logpdf(Q, np.zeros(50)), logs, rtol=1e-6)
        expected = plain.predict(Q, return_std=True)
        np.testing.assert_allclose(weighted.predict(Q, return_std=True), expected, rtol=1e-6)
    draws = [model.model_.draw(np.random.default_rng(4)) for model in (plain, weighted)]
    first, second = (draw(np.float32(Q)[None]) for draw in draws)
    np.testing.assert_allclose(second, first, rtol=1e-6)


def test_pickles_without_the_number_of_samples_of_stacking():
    """In pickles of earlier versions the weight of a sample counts as 1."""
    rng = np.random.default_rng(5)
    X, y = rng.random((100, 2)), rng.normal(size=100)
    forest = AMFRegressor(3, random_state=0).partial_fit(X, y)
    expected = forest.predict(X)
    old = copy.deepcopy(forest)
    state = {k: v for k, v in vars(old.model_.stacking).items() if k in ("_n_forecasts", "_sums")}
    old.model_.stacking = type(old.model_.stacking).__new__(type(old.model_.stacking))
    old.model_.stacking.__setstate__({**state, "_solution": None})
    assert np.array_equal(old.predict(X), expected)
    for model in (forest, old):
        model.partial_fit(X + 0.5, y)
    assert np.array_equal(old.predict(X), forest.predict(X))

"""Regret bounds (Lemma 1, Corollaries 1 and 2) on random and adversarial streams."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees.oracles import one_tree
from trees.prunings import NO_RATES, cheapest, draw_targets, learn, make_forest, path_to, prunings

from mondrian_bo.trees.aggregation import BEST, FORECAST
from mondrian_bo.trees.aggregation_nodes import REAL
from mondrian_bo.trees.aggregation_predict import AGGREGATED
from mondrian_bo.trees.layout import N_NODES, ROOT

N_TREES = 3
examples = settings(max_examples=150, derandomize=True)
streams = {
    "seed": st.integers(0, 10**6),
    "n": st.integers(1, 60),
    "d": st.integers(1, 3),
    "places": st.sampled_from(["anywhere", "repeated", "nested", "on a line"]),
    "opponent": st.sampled_from(["random", "hostile", "alternating", "noisy step"]),
}


def make_places(rng, n, d, places):
    points = rng.random((n, d))
    if places == "repeated":
        points = points[rng.integers(1 + n // 8, size=n)]
    elif places == "nested":
        # Each nearer to a corner than the one before: a deep tree, most of whose cells are empty.
        points *= 0.7 ** np.arange(n)[:, None]
    elif places == "on a line":
        points[:, 1:] = 0.5
    return points.astype(np.float32)


def play(forest, rng, n, places, opponent, bound=1.0):
    """Let an opponent choose the targets, one by one; return the forecasts' losses, (T, n)."""
    points = make_places(rng, n, forest.points.shape[2], places)
    n_classes = forest.n_classes
    for i in range(n):
        here = points[None, i : i + 1]
        if opponent == "random":
            choice = draw_targets(rng, 1, max(n_classes, 2))[0]
        elif opponent == "alternating":
            choice = i % max(n_classes, 2)
        elif opponent == "noisy step" or i == 0:
            choice = int(points[i, 0] > 0.5) ^ int(rng.random() < 0.1)
        elif n_classes == REAL:
            choice = forest.predict(here, NO_RATES, AGGREGATED)[0].mean() < 0.0
        else:
            choice = np.argmin(forest.predict_proba(here, NO_RATES, AGGREGATED)[0])
        if n_classes == REAL:
            target = (
                bound * rng.uniform(-1.0, 1.0)
                if opponent == "random"
                else bound * (2.0 * choice - 1.0)
            )
        else:
            target = np.int32(choice)
        forest.extend(here, np.array([target]), np.ones((1, here.shape[2])))
    forecasts = forest.trace[:, :, FORECAST]
    if n_classes != REAL:
        return -np.log(forecasts)
    losses = (forecasts - forest.targets) ** 2
    # The loss of the first target is not counted on either side.
    losses[:, 0] = 0.0
    return losses


def node_losses(forest, t):
    return forest.node_stats.loss[t, : forest.arrays.counters[t, N_NODES]]


def check_lemma_1(forest, losses):
    for t in range(forest.n_trees):
        tree = one_tree(forest, t)
        total = losses[t].sum()
        slack = 1e-9 * (1.0 + total)
        price = math.log(2.0) / forest.step
        assert total <= cheapest(tree, node_losses(forest, t), price) + slack
        # What the proof shows is more: the mixture's own loss.
        mixed = -forest.node_stats.log_averaged_weight[t, tree.counters[ROOT]] / forest.step
        assert total <= mixed + slack


def hindsight(tree, points, regrets, first=0):
    """Return a node's loss with the best constant, for all nodes."""
    members = [[] for _ in range(tree.counters[N_NODES])]
    for i in range(first, len(points)):
        for node in path_to(tree, points[i]):
            members[node].append(i)
    return [regrets(np.array(own, dtype=int)) for own in members]


@examples
@given(**streams, n_classes=st.integers(2, 4), split_pure=st.booleans())
def test_classes(seed, n, d, places, opponent, n_classes, split_pure):
    rng = np.random.default_rng(seed)
    forest = make_forest(
        d, n_trees=N_TREES, seed=seed, n_classes=n_classes, restricted=False, record=True,
        split_pure=split_pure,
    )  # fmt: skip
    losses = play(forest, rng, n, places, opponent)
    check_lemma_1(forest, losses)
    targets = forest.targets

    def entropy(own):
        counts = np.bincount(targets[own], minlength=n_classes)
        counts = counts[counts > 0]
        return -float(np.sum(counts * np.log(counts / counts.sum())))

    rate = 0.25 * (n_classes - 1) * math.log(4.0 * n)
    for t in range(N_TREES):
        tree = one_tree(forest, t)
        best = cheapest(tree, hindsight(tree, forest.points[0], entropy), math.log(2.0) + rate)
        assert losses[t].sum() <= best + rate + 1e-9
        if split_pure:
            # With step 1 the mixture is Bayes' rule, and its loss that of the chain rule.
            average = forest.node_stats.log_averaged_weight[t, tree.counters[ROOT]]
            assert losses[t].sum() == pytest.approx(-average, rel=1e-10, abs=1e-10)


@examples
@given(**streams, step=st.floats(0.05, 1.0), dirichlet=st.floats(0.01, 3.0))
def test_classes_other_steps(seed, n, d, places, opponent, step, dirichlet):
    # The logarithmic loss is exp-concave for all steps up to 1.
    rng = np.random.default_rng(seed)
    forest = make_forest(
        d, n_trees=N_TREES, seed=seed, n_classes=2, restricted=False, record=True, step=step,
        dirichlet=dirichlet,
    )  # fmt: skip
    check_lemma_1(forest, play(forest, rng, n, places, opponent))


@examples
@given(**streams, bound=st.sampled_from([1.0, 0.01, 300.0]))
def test_real_targets(seed, n, d, places, opponent, bound):
    rng = np.random.default_rng(seed)
    forest = make_forest(
        d, n_trees=N_TREES, seed=seed, restricted=False, record=True, step=0.125 / bound**2
    )
    losses = play(forest, rng, n, places, opponent, bound)
    assert np.all(np.abs(forest.trace[:, 1:, FORECAST]) <= bound * (1.0 + 1e-12))
    check_lemma_1(forest, losses)
    if n < 11:
        # Too few for Corollary 2, which drops terms of lower order: 8 B^2 |T| log 2 of Lemma 1 and
        # 4 B^2 (1 + log N) of each leaf are within 4 B^2 (|T| + 1) log n from n = 11 on.
        return
    targets = forest.targets

    def spread(own):
        return float(np.sum((targets[own] - targets[own].mean()) ** 2)) if len(own) > 0 else 0.0

    rate = 4.0 * bound**2 * math.log(n)
    for t in range(N_TREES):
        tree = one_tree(forest, t)
        best = cheapest(tree, hindsight(tree, forest.points[0], spread, first=1), rate)
        assert losses[t].sum() <= best + rate + 1e-9 * bound**2


def test_hostile_targets_cost_more():
    # The opponent earns its name: no forecast does better than guessing.
    for n_classes in (REAL, 2):
        totals = {}
        for opponent in ("hostile", "noisy step"):
            forest = make_forest(
                2, n_trees=1, seed=1, n_classes=n_classes, restricted=False, record=True,
                step=1.0 if n_classes else 0.125,
            )  # fmt: skip
            losses = play(forest, np.random.default_rng(1), 200, "anywhere", opponent)
            totals[opponent] = losses.sum()
        assert totals["hostile"] > 200 * (math.log(2.0) if n_classes else 1.0) - 1.0
        assert totals["noisy step"] < 0.8 * totals["hostile"]


@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize("task", ["real", "classes", "paused"])
def test_loss_of_the_best_pruning(task, restricted):
    n_classes = REAL if task == "real" else 3
    options = {"n_trees": 2, "n_classes": n_classes, "restricted": restricted, "record": True}
    options["split_pure"] = task != "paused"
    rng = np.random.default_rng(7)
    points = make_places(rng, 70, 2, "repeated")
    points[::2] = make_places(rng, 35, 2, "anywhere")
    targets = draw_targets(rng, 70, n_classes)
    for sample_weights in (None, rng.uniform(0.0, 2.0, size=70)):
        forest = make_forest(2, **options)
        for i in range(70):
            part = slice(i, i + 1)
            weight = None if sample_weights is None else sample_weights[part]
            forest.extend(points[None, part], targets[part], np.ones((1, 2)), weight)
            found = forest.best_losses()
            for t in range(2):
                tree, own = one_tree(forest, t), node_losses(forest, t)
                expected = cheapest(tree, own)
                assert forest.trace[t, i, BEST] == pytest.approx(expected, rel=1e-12, abs=1e-12)
                assert found[t] == forest.trace[t, i, BEST]
                if i < 8:
                    smallest = min(own[list(leaves)].sum() for leaves, _ in prunings(tree))
                    assert expected == pytest.approx(smallest, rel=1e-12, abs=1e-12)
        assert forest.trace.shape == (2, 70, 2)
        # The step plays no part in it.
        other = learn(
            make_forest(2, step=0.01, **options),
            points,
            targets,
            sample_weights=sample_weights,
            steps=[30],
        )
        assert np.array_equal(other.trace[:, :, BEST], forest.trace[:, :, BEST])

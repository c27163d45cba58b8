"""Arrays of a growing forest: room when memory does not suffice, and blocks with many points."""

import numpy as np
import pytest
from trees.oracles import assert_same_bits, snapshot

import mondrian_bo.surrogates.shared.growing_forest as growing_forest
import mondrian_bo.trees.tree as trees
from mondrian_bo.surrogates.amf.forest import AggregatedForest
from mondrian_bo.surrogates.mondrian_forest.class_forest import ClassForest
from mondrian_bo.surrogates.mondrian_forest.forest import GaussianForest
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.trees.aggregation_nodes import REAL

RATES = np.ones((1, 2))
KINDS = {
    "gaussian": (lambda ensemble: GaussianForest(ensemble), np.float64, np.float64),
    "classes": (
        lambda ensemble: ClassForest(ensemble, n_classes=2, discount=1.0),
        np.float64,
        np.int32,
    ),
    "aggregated": (
        lambda ensemble: AggregatedForest(ensemble, n_classes=REAL),
        np.float32,
        np.float64,
    ),
    "aggregated classes": (
        lambda ensemble: AggregatedForest(ensemble, n_classes=2),
        np.float32,
        np.int32,
    ),
    "box": (
        lambda ensemble: AggregatedForest(
            ensemble, n_classes=REAL, box=np.array([[0.0, 0.0], [1.0, 1.0]]), record=True
        ),
        np.float32,
        np.float64,
    ),
    "partitions": (lambda ensemble: PartitionForest(ensemble, RATES[0], 2.0), np.float64, float),
}


def assert_same_room(forest):
    """Every array of nodes has as many entries as the first, and every array of points."""
    arrays, n_nodes = forest.arrays, forest.arrays.parent.shape[1]
    for name in trees.NODE_FIELDS:
        assert getattr(arrays, name).shape[1] == n_nodes, name
    for field in forest.node_stats:
        assert field.shape[1] == n_nodes
    if isinstance(forest, AggregatedForest) and forest.records:
        assert forest._progress.best.shape[1] >= n_nodes
    n_points = min(arrays.points.shape[1], len(forest._targets))
    assert arrays.next_point.shape[1] >= n_points


@pytest.mark.parametrize("kind", KINDS)
def test_failed_growth_leaves_arrays_of_one_size(kind, monkeypatch):
    make, dtype, target_type = KINDS[kind]
    rng = np.random.default_rng(0)
    points = rng.random((1, 60, 2)).astype(dtype)
    targets = (rng.random(60) > 0.5).astype(target_type)
    resized, n_left = trees.resized, [0]

    def fails(array, axis, length, used=None):
        if array.shape[axis] != length:
            n_left[0] -= 1
            if n_left[0] == 0:
                raise MemoryError
        return resized(array, axis, length, used)

    monkeypatch.setattr(trees, "resized", fails)
    monkeypatch.setattr(growing_forest, "resized", fails)
    n_failed = 0
    for n_calls in range(1, 40):
        forest = make(Ensemble(2, 2, np.random.SeedSequence(0)))
        n_left[0] = 0
        if kind == "partitions":
            forest.build(points[:, :8], targets[:8])
        else:
            forest.extend(points[:, :8], targets[:8], RATES)
        n_left[0] = n_calls
        try:
            forest.extend(points[:, 8:40], targets[8:40], RATES)
        except MemoryError:
            n_failed += 1
        n_left[0] = 0
        assert_same_room(forest)
    assert n_failed > 5


@pytest.mark.parametrize("kind", ["gaussian", "aggregated", "aggregated classes", "partitions"])
@pytest.mark.parametrize(("n_known", "n_new"), [(12, 257), (300, 300), (1000, 257)])
def test_blocks_with_many_points_restore_every_array(kind, n_known, n_new):
    make, dtype, target_type = KINDS[kind]
    rng = np.random.default_rng(1)
    points = rng.random((1, n_known + n_new, 2)).astype(dtype)
    targets = (rng.random(n_known + n_new) > 0.5).astype(target_type)
    forest = make(Ensemble(2, 2, np.random.SeedSequence(0)))
    if kind == "partitions":
        forest.build(points[:, :6], targets[:6])
    else:
        forest.extend(points[:, :6], targets[:6], RATES)
    # Trees that grow point by point do not number their nodes in preorder.
    for i in range(6, n_known):
        forest.extend(points[:, i : i + 1], targets[i : i + 1], RATES)
    for _ in range(2):
        # The first block enlarges the arrays, the second finds them large enough.
        before = snapshot(forest)
        with forest.extended(points[:, n_known:], targets[n_known:], RATES):
            assert forest.n_points == n_known + n_new
        assert_same_bits(snapshot(forest), before)


def test_forests_that_cannot_be_rolled_back_refuse_blocks():
    box = np.array([[0.0, 0.0], [1.0, 1.0]])
    for options in (
        {"n_classes": REAL, "box": box},
        {"n_classes": 2, "split_pure": False},
        {"n_classes": REAL, "max_nodes": 5},
    ):
        forest = AggregatedForest(Ensemble(2, 2, np.random.SeedSequence(0)), **options)
        points, targets = np.zeros((1, 3, 2), np.float32), np.array([0, 1, 1])
        forest.extend(points, targets, RATES)
        before = snapshot(forest)
        with (
            pytest.raises(ValueError, match="rolled back"),
            forest.extended(points, targets, RATES),
        ):
            pytest.fail("must not be reached")
        assert_same_bits(snapshot(forest), before)

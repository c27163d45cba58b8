"""Partitions of aggregated forests: validity, distributions and depth.

Seeds are fixed. A test of one hypothesis fails below p = 1e-4, so that a sound program fails with
probability 0.01 or so over all of them when its stream of random numbers changes.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from trees.oracles import chain, check_tree, grow, one_tree, shapes
from trees.prunings import draw_targets, learn, make_forest, preorder_of, unit_box

from mondrian_bo.trees.aggregation_nodes import REAL
from mondrian_bo.trees.aggregation_predict import AT_LEAF
from mondrian_bo.trees.layout import LEFT, LOWER, N_BOXES, N_NODES, NONE, PAUSED, RIGHT, ROOT, UPPER

SIGNIFICANCE = 1e-4
N_TREES = 3000
RATES = np.array([0.5, 2.0])


def stays_leaf(points, classes, members):
    """Whether a block with these points is not to be split."""
    if len(np.unique(points[members], axis=0)) <= 1:
        return True
    return classes is not None and len(np.unique(classes[members])) <= 1


def check_cells(tree, points, box, classes=None):
    """Assert that a tree is the smallest part of a partition of the box that separates the data."""
    seen = []

    def visit(node, parent, parent_time, cell, members):
        # `members` were routed here from the root, independently of the tree's chains and sizes.
        seen.append(node)
        assert tree.parent[node] == parent
        assert tree.size[node] == len(members)
        assert np.array_equal(tree.box[node], cell)
        assert np.all(points[members] >= cell[LOWER])
        assert np.all(points[members] <= cell[UPPER])
        left, right = (int(child) for child in tree.children[node])
        is_leaf = stays_leaf(points, classes, members)
        if left == NONE:
            assert tree.split_time[node] == np.inf
            assert sorted(chain(tree, node)) == sorted(members.tolist())
            assert is_leaf
            return
        # A cell splits only to separate points, so two empty cells have no common parent.
        assert not is_leaf
        dimension, threshold = tree.dimension[node], tree.threshold[node]
        assert right not in (NONE, left)
        assert 0 <= dimension < points.shape[1]
        assert cell[LOWER, dimension] <= threshold < cell[UPPER, dimension]
        assert parent_time < tree.split_time[node] < np.inf
        goes_left = points[members, dimension] <= threshold
        # The two cells tile this one. Corners are float32.
        lower, upper = cell.copy(), cell.copy()
        lower[UPPER, dimension] = upper[LOWER, dimension] = np.float32(threshold)
        visit(left, node, tree.split_time[node], lower, members[goes_left])
        visit(right, node, tree.split_time[node], upper, members[~goes_left])

    root = int(tree.counters[ROOT])
    visit(root, NONE, 0.0, box.astype(np.float32), np.arange(len(points)))
    assert sorted(seen) == list(range(tree.counters[N_NODES]))


@settings(max_examples=30, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    d=st.integers(1, 4),
    grid=st.sampled_from([2, 5, 1000]),
    task=st.sampled_from(["real", "classes", "paused"]),
    restricted=st.booleans(),
)
def test_valid_after_every_point(seed, n, d, grid, task, restricted):
    rng = np.random.default_rng(seed)
    n_classes = REAL if task == "real" else 2
    # Coordinates from a grid: ties, duplicates, points on the border of the box.
    points = (rng.integers(grid + 1, size=(n, d)) / grid).astype(np.float32)
    targets = draw_targets(rng, n, n_classes)
    forest = make_forest(
        d, n_trees=2, seed=seed, n_classes=n_classes, split_pure=task != "paused",
        restricted=restricted,
    )  # fmt: skip
    for i in range(n):
        forest.extend(points[None, i : i + 1], targets[i : i + 1], np.ones((1, d)))
        classes = targets[: i + 1] if task == "paused" else None
        for t in range(2):
            tree, known = one_tree(forest, t), points[: i + 1]
            check_rows(forest.arrays, t)
            if not restricted:
                check_cells(tree, known, unit_box(d), classes)
            elif task != "paused":
                check_tree(tree, known)
            else:
                check_paused(tree, known, classes, forest.arrays.row[t] != NONE)


def check_rows(trees, t):
    """Assert that each node has a box of its own, but some leaves of restricted trees.

    Those of one point have none, and those of one class may be without.
    """
    n_nodes, n_boxes = trees.counters[t, [N_NODES, N_BOXES]]
    row = trees.row[t, :n_nodes]
    assert sorted(row[row != NONE]) == list(range(n_boxes))
    assert n_boxes <= trees.box.shape[1]
    is_leaf = trees.children[t, :n_nodes, LEFT] == NONE
    is_alone = is_leaf & (trees.size[t, :n_nodes] == 1)
    may_be_without = is_alone | (is_leaf & (trees.dimension[t, :n_nodes] == PAUSED))
    assert n_boxes == n_nodes or np.all(row[is_alone] == NONE)
    assert np.all(may_be_without[row == NONE])


def check_paused(tree, points, classes, has_box):
    """Assert what `check_tree` does not: which leaves of a restricted tree are split."""
    members = {}
    for node in preorder_of(tree)[::-1]:
        left, right = (int(child) for child in tree.children[node])
        if left == NONE:
            members[node] = chain(tree, node)
            assert stays_leaf(points, classes, members[node])
        else:
            members[node] = members[left] + members[right]
            assert tree.split_time[[left, right]].min() > tree.split_time[node]
        if has_box[node]:
            own = points[members[node]]
            assert np.array_equal(tree.box[node, LOWER], own.min(axis=0))
            assert np.array_equal(tree.box[node, UPPER], own.max(axis=0))


def test_neighbouring_floats():
    # Cells are cut down to the last bit where points differ in no more.
    one = np.float32(0.3)
    points = np.array([[one, 0.5], [np.nextafter(one, np.float32(1.0)), 0.5], [one, 0.5]])
    points = points.astype(np.float32)
    forest = learn(make_forest(2, n_trees=50, restricted=False), points, np.zeros(3))
    for t in range(50):
        check_cells(one_tree(forest, t), points, unit_box(2))


@pytest.mark.parametrize("restricted", [True, False])
def test_cuts_between_the_smallest_floats(restricted):
    # Their times are beyond what float32 holds, and nothing lies between their sides.
    tiny = np.float32(1e-45)
    points = np.array([[0.0], [tiny], [2 * tiny], [1.0]], dtype=np.float32)
    forest = learn(make_forest(1, n_trees=20, restricted=restricted), points, np.zeros(4))
    for t in range(20):
        tree = one_tree(forest, t)
        inner = tree.children[:, LEFT] != NONE
        assert inner.sum() >= 3
        assert np.all(np.isfinite(tree.split_time[inner]))
        assert tree.split_time[inner].max() > 1e38
        # Each of the four points is alone in its leaf.
        assert np.count_nonzero(tree.size[~inner]) == 4
        assert tree.size[~inner].max() == 1


@pytest.mark.parametrize("n_before", [5, 100])
def test_a_leaf_of_one_class_has_its_box_when_another_class_comes(n_before):
    # Few points give their box to the node that is inserted above them, many keep it.
    rng = np.random.default_rng(n_before)
    points = rng.random((n_before + 2, 2)).astype(np.float32)
    points[n_before:] += 2.0
    targets = np.zeros(len(points), dtype=np.int32)
    targets[n_before:] = 1
    forest = make_forest(2, n_trees=3, n_classes=2, split_pure=False)
    learn(forest, points[:n_before], targets[:n_before], steps=[])
    assert np.all(forest.arrays.row[:, 0] == NONE)
    learn(forest, points[n_before:], targets[n_before:])
    for t in range(3):
        root = forest.arrays.counters[t, ROOT]
        leaf = int(
            np.argmax(forest.arrays.size[t, : forest.arrays.counters[t, N_NODES]] == n_before)
        )
        assert forest.arrays.children[t, leaf, LEFT] == NONE
        assert (forest.arrays.row[t, leaf] == NONE) == (n_before == 5)
        hull = forest.arrays.box[t, forest.arrays.row[t, root]]
        assert np.array_equal(hull, [points.min(axis=0), points.max(axis=0)])


def test_another_box():
    box = np.array([[-3.0, 10.0], [5.0, 10.5]])
    rng = np.random.default_rng(0)
    points = rng.uniform(*box, size=(60, 2)).astype(np.float32)
    forest = make_forest(2, n_trees=5, restricted=False)
    forest.box = box
    learn(forest, points, np.zeros(60), steps=[7])
    for t in range(5):
        check_cells(one_tree(forest, t), points, box)


def uniform_p(values):
    return stats.kstest(values, "uniform").pvalue


@pytest.mark.parametrize("at_once", [True, False])
def test_distribution_of_every_cut_of_a_cell(at_once):
    # One sample; all cuts of thousands of trees: rate, place and dimension are those of the cell,
    # wherever in it the points may be.
    rng = np.random.default_rng(1)
    points = (0.2 * rng.random((12, 2))).astype(np.float32)
    forest = make_forest(2, n_trees=N_TREES, seed=2, restricted=False)
    learn(forest, points, np.zeros(12), rates=RATES, steps=[] if at_once else None)
    trees, rows = forest.arrays, np.arange(N_TREES)[:, None]
    used = np.arange(trees.parent.shape[1]) < trees.counters[:, N_NODES, None]
    inner = used & (trees.children[:, :, LEFT] != NONE)
    start = np.where(trees.parent == NONE, 0.0, trees.split_time[rows, trees.parent])
    extents = RATES * (trees.box[:, :, UPPER].astype(float) - trees.box[:, :, LOWER])
    is_root = trees.parent == NONE
    # The first cut, of the whole box, by itself.
    for chosen in (inner & is_root, inner):
        rate = extents[chosen].sum(axis=1)
        waited = (trees.split_time - start)[chosen]
        # Differences of times lose digits in cells that are small next to their age.
        sharp = waited > 1e-9 * start[chosen]
        assert sharp.mean() > 0.999
        assert uniform_p(-np.expm1(-rate * waited)[sharp]) > SIGNIFICANCE
        dimension = trees.dimension[chosen]
        corner = trees.box[chosen].astype(float)
        rank = np.arange(len(rate))
        low, high = corner[rank, LOWER, dimension], corner[rank, UPPER, dimension]
        assert uniform_p((trees.threshold[chosen] - low) / (high - low)) > SIGNIFICANCE
        share = extents[chosen][:, 0] / rate
        score = np.sum((dimension == 0) - share) / np.sqrt(np.sum(share * (1.0 - share)))
        assert 2.0 * stats.norm.sf(abs(score)) > SIGNIFICANCE
    assert np.all(inner[is_root & used])
    assert np.mean(trees.dimension[inner & is_root] == 0) == pytest.approx(0.2, abs=0.03)


def same_distribution(one, two):
    """Return the p-value of a two-sample test for each statistic of trees."""
    found = {}
    for name, first, second in zip(one._fields, one, two, strict=True):
        if first.dtype.kind == "f":
            found[name] = stats.ks_2samp(first, second).pvalue
            continue
        # Rare values are counted together.
        pooled = np.sort(np.concatenate([first, second]))
        edges = np.unique(pooled[len(pooled) // 20 :: len(pooled) // 20])
        table = [np.bincount(np.searchsorted(edges, v), minlength=len(edges) + 1)
                 for v in (first, second)]  # fmt: skip
        table = np.array(table)[:, np.sum(table, axis=0) > 0]
        found[name] = stats.chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0
    return found


def distribution_data(n=14):
    rng = np.random.default_rng(5)
    points = rng.random((n, 2)).astype(np.float32) ** 2
    points[-4:] = points[:4]
    return points, (points[:, 0] + 0.2 * rng.random(n) > 0.4).astype(np.int32)


@pytest.mark.parametrize("task", ["real", "paused"])
def test_order_of_the_points_does_not_matter(task):
    # Two samples; the smallest p-value of 9 statistics and 4 orders is corrected for their number.
    points, classes = distribution_data()
    paused = task == "paused"
    targets = classes if paused else classes.astype(float)
    # The first point stays the first, whose leaf is looked at.
    rest = np.arange(1, len(points))
    orders = [rest, rest[::-1], rest[np.argsort(points[1:, 0])], rest[np.argsort(classes[1:])]]
    found = []
    for k, order in enumerate(orders):
        order = np.append(0, order)
        forest = make_forest(
            2, n_trees=N_TREES, seed=10 + k, restricted=False, split_pure=not paused,
            n_classes=2 if paused else REAL,
        )  # fmt: skip
        learn(forest, points[order], targets[order], rates=RATES)
        found.append(shapes(forest))
    for other in found[1:]:
        values = same_distribution(found[0], other)
        assert min(values.values()) > SIGNIFICANCE / 3.0, values
    # The test can tell: two other points have other leaves.
    order = np.roll(np.arange(len(points)), 5)
    forest = make_forest(2, n_trees=N_TREES, seed=20, restricted=False)
    other = shapes(learn(forest, points[order], np.zeros(len(points)), rates=RATES))
    assert min(same_distribution(found[0], other).values()) < 1e-10


@pytest.mark.parametrize("at_once", [True, False])
def test_restricted_trees_have_the_distribution_of_other_mondrian_trees(at_once):
    # Two samples: those of GaussianForest, sampled in a batch or grown online.
    points, _ = distribution_data()
    zeros = np.zeros(len(points))
    forest = make_forest(2, n_trees=N_TREES, seed=30)
    aggregated = shapes(learn(forest, points, zeros, rates=RATES))
    first = len(points) if at_once else 0
    other = grow(points.astype(float), zeros, first=first, n_trees=N_TREES, seed=31, rates=RATES)
    values = same_distribution(aggregated, shapes(other))
    assert set(aggregated.leaves) == {len(points) - 4}
    assert min(values.values()) > SIGNIFICANCE, values
    # The test can tell: other rates have another distribution.
    other = grow(points.astype(float), zeros, first=first, n_trees=N_TREES, seed=31)
    assert min(same_distribution(aggregated, shapes(other)).values()) < 1e-10


def test_paused_trees_are_parts_of_the_others():
    # Unrestricted: of one partition, the cells of one class are left whole. Two samples: the first
    # cut is the same in distribution, and no more leaves than where all points are separated.
    points, classes = distribution_data()
    forests = [
        learn(make_forest(2, n_trees=N_TREES, seed=40 + k, n_classes=2, restricted=False,
                          split_pure=k == 0), points, classes, rates=RATES)
        for k in range(2)
    ]  # fmt: skip
    all_split, paused = (shapes(forest) for forest in forests)
    values = same_distribution(all_split, paused)
    for name in ("root_dimension", "root_time", "root_location", "root_left_size"):
        assert values[name] > SIGNIFICANCE
    assert paused.leaves.mean() < 0.8 * all_split.leaves.mean()


SIZES = [160 * 2**k for k in range(7)]


def mean_depths(points, *, restricted, n_trees=20):
    """Return the mean depth of the points' leaves at each of `SIZES`, and its standard error."""
    forest = make_forest(points.shape[1], n_trees=n_trees, seed=50, restricted=restricted)
    rates, start, found = np.ones((1, points.shape[1])), 0, []
    for end in SIZES:
        forest.extend(points[None, start:end], np.zeros(end - start), rates)
        start = end
        found.append(forest.weighted_depths(points[None, :end], AT_LEAF).mean(axis=0))
    found = np.array(found)
    return found.mean(axis=1), found.std(axis=1) / math.sqrt(n_trees)


@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize("d", [1, 3])
def test_depth_on_uniform_data(d, restricted):
    """Proposition 2, with its constant put right.

    The fraction U of a uniform cell that a cut leaves on one side is uniform, so that the number of
    other points in the cell of depth k around a point has mean n (1 - 2 E[U (1 - U)])^k, which is
    n (2/3)^k, and the proof's last lines give log n / log(3/2) + 3. The proof has E[U (1 - U)] >=
    1/4 from a bound that is 1/8; the truth is 1/6, and log n / log 2 + 2 as printed is too little:
    log N shrinks by E[-log U] = 1/2 per level, U now being the side of the point, so that the depth
    grows as 2 log n, by 2 log 2 per doubling, where log n / log 2 is 1.44 log n.
    """
    points = np.random.default_rng(51).random((SIZES[-1], d)).astype(np.float32)
    depths, errors = mean_depths(points, restricted=restricted)
    assert np.all(depths < np.log(SIZES) / math.log(1.5) + 3.0)
    if not restricted:
        assert np.all(depths > np.log(SIZES) / math.log(2.0) + 2.0)
    # Errors of successive sizes are positively correlated.
    increments = np.diff(depths)
    assert np.all(np.abs(increments[2:] - 2.0 * math.log(2.0)) < 4.0 * errors[3:])
    slope = np.polyfit(np.log(SIZES), depths, 1)[0]
    assert slope == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize("cluster", ["square", "normal"])
def test_depth_on_clustered_data(cluster, restricted):
    # Cells must shrink to the clusters first, which costs levels once, where they are not
    # restricted to the data; within clusters the density is smooth, and growth is as before.
    rng = np.random.default_rng(52)
    which = rng.integers(10, size=SIZES[-1])
    if cluster == "square":
        offsets = (
            rng.uniform(-1.0, 1.0, (SIZES[-1], 2)) * rng.uniform(0.001, 0.015, 10)[which, None]
        )
    else:
        offsets = rng.normal(0.0, 0.003, (SIZES[-1], 2))
    points = (rng.uniform(0.1, 0.9, size=(10, 2))[which] + offsets).astype(np.float32)
    depths, errors = mean_depths(points, restricted=restricted)
    increments = np.diff(depths)
    deviations = np.abs(increments[-3:] - increments[-3:].mean())
    assert np.all(deviations < 4.0 * errors[-3:])
    if restricted and cluster == "normal":
        # Cuts between the outliers of the tails cost more; how much falls as log n grows.
        assert 2.0 * math.log(2.0) < increments[-3:].mean() < 2.0
    else:
        assert increments[-3:].mean() == pytest.approx(2.0 * math.log(2.0), abs=0.12)


def test_first_cut_may_leave_a_cell_empty():
    points = np.array([[0.1, 0.1], [0.2, 0.2]], dtype=np.float32)
    forest = learn(make_forest(2, n_trees=N_TREES, restricted=False), points, np.zeros(2))
    trees, rows = forest.arrays, np.arange(N_TREES)
    root = trees.counters[:, ROOT]
    right = trees.children[rows, root, RIGHT]
    empty = trees.size[rows, right] == 0
    # A cut beyond 0.2, whatever its dimension; one sample, binomial.
    assert stats.binomtest(int(empty.sum()), N_TREES, 0.8).pvalue > SIGNIFICANCE
    assert np.all(trees.children[rows, right, LEFT][empty] == NONE)

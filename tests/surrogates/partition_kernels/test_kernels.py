"""What the kernels' partitions are, against plain constructions of the paper's algorithms."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from scipy.stats import chisquare
from sklearn.base import clone, is_regressor
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mondrian_bo.surrogates import (
    AMFClassifier,
    AMFRegressor,
    FastClusterKernel,
    MembershipKernel,
    MondrianForestClassifier,
    MondrianForestRegressor,
    RandomForestKernel,
    RandomPartitionKernel,
)

SIGNIFICANCE = 1e-4


def make_data(n=80, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.arange(1.0, d + 1.0) + 0.1 * rng.normal(size=n)


def groups(clusters):
    """A partition whatever its clusters are called: the set of its clusters."""
    found = {}
    for point, cluster in enumerate(np.asarray(clusters).tolist()):
        found.setdefault(cluster if cluster != -1 else ("alone", point), set()).add(point)
    return {frozenset(cluster) for cluster in found.values()}


def paths_through(forest, X):
    """The nodes that each row passes, from the root down, in each tree."""
    indicator, ends = forest.decision_path(X)
    for start, end in pairwise(ends):
        own = csr_matrix(indicator)[:, start:end]
        yield [np.sort(own[i].indices).tolist() for i in range(len(X))]


# Random Forest kernel -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_trees_are_cut_at_one_level(seed):
    X, y = make_data(seed=seed)
    kernel = RandomForestKernel(40, random_state=seed).fit(X, y)
    assert isinstance(kernel.forest_, RandomForestRegressor)
    assert len(kernel.forest_.estimators_) == 40
    # Nodes of scikit-learn's trees are numbered from the root down, so sorted paths are in order.
    for clusters, paths in zip(kernel.assign(X), paths_through(kernel.forest_, X), strict=True):
        height = max(map(len, paths)) - 1
        cuts = [groups([hash(tuple(p[: d + 1])) for p in paths]) for d in range(height + 1)]
        assert groups(clusters) in cuts


def test_levels_are_uniform():
    # 8 distinct points in one dimension of a fixed tree: every level tells itself apart.
    X = np.arange(8.0)[:, None]
    forest = RandomForestRegressor(bootstrap=False)
    kernel = RandomForestKernel(1000, forest=forest, random_state=0).fit(X, X[:, 0])
    counts = Counter(kernel.n_clusters_.tolist())
    assert sorted(counts) == [1, 2, 4, 8]
    assert chisquare(list(counts.values())).pvalue > SIGNIFICANCE
    lower = RandomForestKernel(300, forest=forest, max_height=1, random_state=0)
    assert set(lower.fit(X, X[:, 0]).n_clusters_) == {1, 2}
    lowest = RandomForestKernel(5, forest=forest, max_height=0).fit(X, X[:, 0])
    assert np.array_equal(lowest(X), np.ones((8, 8)))


@pytest.mark.parametrize(
    "forest",
    [MondrianForestRegressor(), AMFRegressor(), MondrianForestClassifier(), AMFClassifier()],
)
@pytest.mark.parametrize("height", ["level", "split_time"])
def test_forests_of_ours(forest, height):
    X, y = make_data(40)
    if hasattr(forest, "predict_proba"):
        y = y > 0
    kernel = RandomForestKernel(15, forest=forest, height=height, random_state=0).fit(X, y)
    assert not hasattr(forest, "n_features_in_")
    fitted = kernel.forest_
    grown = fitted.forest_ if hasattr(fitted, "forest_") else fitted.model_.forest
    trees, leaves = grown.arrays, grown.leaves(X[None].astype(grown.points.dtype))
    for t, clusters in enumerate(kernel.assign(X)):
        paths = []
        for leaf in leaves[:, t]:
            path = [int(leaf)]
            while trees.parent[t, path[0]] >= 0:
                path.insert(0, int(trees.parent[t, path[0]]))
            paths.append(path)
        time = {node: trees.split_time[t, node] for path in paths for node in path[:-1]}
        if height == "level":
            levels = range(max(map(len, paths)))
            cuts = [[tuple(p[: d + 1]) for p in paths] for d in levels]
        else:
            cuts = [
                [next(v for v in p if not time.get(v, np.inf) <= s) for p in paths]
                for s in [0.0, *time.values()]
            ]
        assert groups(clusters) in [groups([hash(c) for c in cut]) for cut in cuts]


FAR = np.array([2000.0, -(2.0**30), 0.0])
"""Distances from 0. Sums with multiples of 2^-16 are exact in double precision."""


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("height", ["level", "split_time"])
@pytest.mark.parametrize(
    "kind", [AMFRegressor, AMFClassifier, MondrianForestRegressor, MondrianForestClassifier]
)
def test_kernels_far_from_zero(kind, height, bounded):
    if bounded and not hasattr(kind(), "bounds"):
        pytest.skip("the forest has no bounds")
    rng = np.random.default_rng(0)
    X = rng.integers(0, 64, (60, 3)) / 64.0
    y = X[:, 0] + np.sin(10.0 * X[:, 1])
    y = y if is_regressor(kind()) else (y > np.median(y)).astype(int)
    bounds = np.array([[0.0, 1.0]] * 3)
    # AMF subtracts the first values of far features, or their lower bounds.
    origin = np.zeros(3) if bounded else X[0] * [1.0, 1.0, 0.0]

    def kernel(shift):
        options = {"bounds": bounds + shift[:, None]} if bounded else {}
        found = RandomForestKernel(20, forest=kind(**options), height=height, random_state=0)
        return found.fit(X + shift, y)

    near, far, probes = kernel(-origin), kernel(FAR), X[::3] + 2.0**-10
    expected = near(probes - origin, X - origin)
    assert len(np.unique(expected)) > 5
    assert np.array_equal(far(probes + FAR, X + FAR), expected)


def test_numbers_of_clusters_at_split_times_are_uniform():
    X = np.random.default_rng(0).random((5, 1))
    kernel = RandomForestKernel(
        2000, forest=MondrianForestRegressor(), height="split_time", random_state=0
    ).fit(X, X[:, 0])
    counts = Counter(kernel.n_clusters_.tolist())
    assert sorted(counts) == [1, 2, 3, 4, 5]
    assert chisquare(list(counts.values())).pvalue > SIGNIFICANCE


@pytest.mark.parametrize(
    ("forest", "discrete", "n_trees"),
    [
        (RandomForestClassifier(min_samples_leaf=3), True, 10),
        (ExtraTreesClassifier(), True, 10),
        (RandomTreesEmbedding(max_depth=3), None, 10),
        (GradientBoostingRegressor(), False, 10),
        (GradientBoostingClassifier(), True, 30),
    ],
)
def test_other_forests_of_scikit_learn(forest, discrete, n_trees):
    X, y = make_data()
    y = np.digitize(y, [-4.0, 4.0]) if discrete else y
    kernel = RandomForestKernel(10, forest=forest, random_state=0)
    kernel.fit(X, None if discrete is None else y)
    leaves = np.asarray(kernel.forest_.apply(X)).reshape(len(X), -1)
    assert kernel.assign(X).shape == (n_trees, len(X))
    for clusters, leaf in zip(kernel.assign(X), leaves.T, strict=True):
        assert len(np.unique(np.stack([clusters, leaf]), axis=1).T) == len(np.unique(leaf))


def test_default_forest_follows_the_type_of_the_targets():
    X, y = make_data(30)
    assert isinstance(RandomForestKernel(2).fit(X, y.round()).forest_, RandomForestRegressor)
    assert isinstance(RandomForestKernel(2).fit(X, y > 0).forest_, RandomForestClassifier)


@pytest.mark.parametrize(
    "forest", [None, ExtraTreesRegressor(), GradientBoostingRegressor(), AMFRegressor()]
)
def test_partitions_do_not_depend_on_the_unit_of_the_targets(forest):
    X, _ = make_data(60)
    # Integers, so that other units and origins are exact.
    y = np.random.default_rng(0).permutation(60) - 20.0
    kernel = RandomForestKernel(20, forest=forest, random_state=0)
    expected = kernel.fit(X, y).assign(X)
    assert kernel.n_clusters_.max() > 5
    assert np.isclose(kernel.forest_.predict(X).mean(), 0.0, atol=0.5)
    for other in (y * 2.0**-27, y * 2.0**-600, y * 2.0**100, y + 2.0**30):
        assert np.array_equal(clone(kernel).fit(X, other).assign(X), expected)


def test_splits_at_usual_scales_are_those_of_plain_targets():
    X, y = make_data(150)
    kernel = RandomForestKernel(100, random_state=0).fit(X, y)
    plain = RandomForestRegressor(**kernel.forest_.get_params()).fit(X, y)
    for own, other in zip(kernel.forest_.estimators_, plain.estimators_, strict=True):
        # Further down, features that separate few rows alike are ties, which rounding decides.
        assert own.tree_.feature[0] == other.tree_.feature[0]
        assert own.tree_.threshold[0] == other.tree_.threshold[0]


def test_equal_targets_and_poisson_forests():
    X, y = make_data(40)
    assert np.array_equal(RandomForestKernel(5).fit(X, np.full(40, 0.1))(X), np.ones((40, 40)))
    poisson = RandomForestKernel(
        5, forest=RandomForestRegressor(criterion="poisson"), random_state=0
    )
    counts = np.abs(y).round()
    assert poisson.fit(X, counts).n_clusters_.max() > 5
    with pytest.raises(ValueError, match="negative"):
        poisson.fit(X, -counts)
    with pytest.raises(ValueError, match="squares overflow"):
        RandomForestKernel(5).fit(X, y * 1e200)


def test_random_forest_kernel_refuses():
    X, y = make_data(20)
    with pytest.raises(ValueError, match="requires y to be passed"):
        RandomForestKernel().fit(X)
    with pytest.raises(ValueError, match='height="split_time" needs trees with split times'):
        RandomForestKernel(2, height="split_time").fit(X, y)

    class Unknown(RandomForestRegressor):
        def fit(self, X, y):
            return self

    with pytest.raises(ValueError, match="forest must be a forest of scikit-learn"):
        RandomForestKernel(2, forest=Unknown()).fit(X, y)


@pytest.mark.parametrize(
    "forest",
    [
        BaggingRegressor(),
        BaggingRegressor(max_features=0.5),
        AdaBoostRegressor(),
        IsolationForest(),
        IsolationForest(max_features=0.5),
        HistGradientBoostingRegressor(),
    ],
)
def test_random_forest_kernel_refuses_forests_without_leaves(forest):
    X, y = make_data(20)
    with pytest.raises(ValueError, match="forest must be a forest of scikit-learn"):
        RandomForestKernel(2, forest=forest, random_state=0).fit(X, y)


# Fast Cluster kernel ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_points_join_the_nearest_centre(seed):
    X, _ = make_data(seed=seed)
    new, _ = make_data(30, seed=seed + 10)
    kernel = FastClusterKernel(60, random_state=seed).fit(X)
    for Z in (X, new):
        for clusters, kept, centres in zip(
            kernel.assign(Z), kernel.dimensions_, kernel.centres_, strict=True
        ):
            distances = np.linalg.norm(Z[:, None, kept] - centres[None], axis=2)
            assert np.array_equal(clusters, distances.argmin(axis=1))
            rows = {tuple(row) for row in X[:, kept]}
            assert {tuple(centre) for centre in centres} <= rows


def test_fast_cluster_draws_as_algorithm_2_says():
    X, _ = make_data(100, d=5)
    kernel = FastClusterKernel(3000, max_height=4, random_state=0).fit(X)
    sizes = Counter(kernel.n_clusters_.tolist())
    assert sorted(sizes) == [1, 2, 4, 8, 16]
    assert chisquare(list(sizes.values())).pvalue > SIGNIFICANCE
    masks = Counter(map(tuple, kernel.dimensions_.tolist()))
    assert len(masks) == 31  # all but none
    assert chisquare(list(masks.values())).pvalue > SIGNIFICANCE
    assert FastClusterKernel(500).fit(X).n_clusters_.max() == 64
    assert set(FastClusterKernel(9).fit(X[:1]).n_clusters_) == {1}


def test_centres_are_drawn_alike_and_once():
    X = np.arange(6.0)[:, None]
    kernel = FastClusterKernel(3000, max_height=2, random_state=0).fit(X)
    assert all(len(np.unique(centres)) == len(centres) for centres in kernel.centres_)
    counts = Counter(np.concatenate(kernel.centres_)[:, 0].tolist())
    assert chisquare([counts[x] for x in X[:, 0]]).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("exponent", [-1000, -600, 600, 1000])
def test_clusters_do_not_depend_on_the_unit_of_inputs(exponent):
    X = np.random.default_rng(0).normal(size=(60, 3))
    expected = FastClusterKernel(50, random_state=0).fit(X)(X)
    scaled = X * 2.0**exponent
    np.testing.assert_array_equal(
        FastClusterKernel(50, random_state=0).fit(scaled)(scaled), expected
    )


# Any partitions -----------------------------------------------------------------------------------


def threshold(X, y, rng):
    """A cut of [0, 1] at a uniform place: k(a, b) = 1 - |a - b|."""
    place = rng.random_sample()
    return lambda Z: Z[:, 0] > place


def test_callable_and_its_expectation():
    X = np.linspace(0.0, 1.0, 7)[:, None]
    exact = 1.0 - np.abs(X - X.T)
    errors = {}
    for m in (100, 1600):
        drawn = [RandomPartitionKernel(threshold, m, random_state=s).fit(X)(X) for s in range(10)]
        mean = np.mean(drawn, axis=0)
        # Lemma 3.2: the variance is that of a Bernoulli variable, over m.
        deviation = np.sqrt(exact * (1.0 - exact) / (10 * m))
        assert np.all(np.abs(mean - exact) <= 5.0 * deviation)
        errors[m] = np.sqrt(np.mean((np.array(drawn) - exact) ** 2))
    assert 2.8 < errors[100] / errors[1600] < 5.7  # m^-1/2 would be 4


def test_clusters_that_training_did_not_see_are_lone():
    X = np.array([[0.1], [0.2], [0.7]])
    kernel = RandomPartitionKernel(lambda X, y, rng: lambda Z: np.floor(Z[:, 0]).astype(int), 3)
    kernel.fit(X)
    assert np.array_equal(kernel.assign([[0.5], [1.5], [1.6]]), [[0, -1, -1]] * 3)


def test_k_means_restarts():
    X, _ = make_data(60)
    kernel = RandomPartitionKernel(n_partitions=6, random_state=0).fit(X)
    assert set(kernel.n_clusters_) == {8}
    found = {frozenset(groups(clusters)) for clusters in kernel.assign(X)}
    assert len(found) > 1  # restarts differ
    fitted = RandomPartitionKernel(KMeans(3, n_init=1), n_partitions=4, random_state=0).fit(X)
    rng = np.random.RandomState(0)
    for clusters in fitted.assign(X):
        replica = KMeans(3, n_init=1, random_state=rng.randint(2**31 - 1)).fit(X)
        assert groups(clusters) == groups(replica.labels_)


def test_nested_seeds_are_set():
    X, _ = make_data(60)
    restarts = make_pipeline(StandardScaler(), KMeans(8, n_init=1, random_state=0))
    clusters = RandomPartitionKernel(restarts, 4, random_state=0).fit(X).assign(X)
    assert len({frozenset(groups(row)) for row in clusters}) > 1


def test_partitions_known_on_training_rows_extend_to_the_nearest():
    X, _ = make_data(50, d=2)
    given = np.random.default_rng(0).integers(0, 4, size=(3, 50))
    waiting = list(given)
    kernel = RandomPartitionKernel(lambda X, y, rng: waiting.pop(0), 3).fit(X)
    assert [groups(row) for row in kernel.assign(X)] == [groups(row) for row in given]
    new, _ = make_data(20, d=2, seed=3)
    nearest = np.linalg.norm(new[:, None] - X[None], axis=2).argmin(axis=1)
    assert np.array_equal(kernel.assign(new), kernel.assign(X)[:, nearest])


def test_noise_is_lone_and_clusterers_without_predict_serve():
    X = np.array([[0.0, 0.0], [0.0, 0.1], [0.1, 0.0], [5.0, 5.0], [9.0, 9.0]])
    kernel = RandomPartitionKernel(DBSCAN(eps=0.5, min_samples=2), n_partitions=2).fit(X)
    assert np.array_equal(
        kernel(X), np.kron([[1, 0], [0, 0]], np.ones((3, 3)))[:5, :5] + np.diag([0, 0, 0, 1, 1])
    )
    agglomerative = RandomPartitionKernel(
        AgglomerativeClustering(3), 20, max_features=0.5, max_samples=0.8, random_state=0
    )
    X, _ = make_data(60)
    clusters = agglomerative.fit(X).assign(X)
    assert set(agglomerative.n_clusters_) == {3}
    assert len({frozenset(groups(row)) for row in clusters}) > 5


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (np.zeros(3, dtype=int), r"array of shape \(20,\); got shape \(3,\)"),
        (np.zeros(20), "clusters as integers or strings, got float64"),
    ],
)
def test_bad_partitions_are_refused(returned, message):
    X, _ = make_data(20)
    with pytest.raises(ValueError, match=message):
        RandomPartitionKernel(lambda X, y, rng: returned).fit(X)
    with pytest.raises(ValueError, match=message):
        RandomPartitionKernel(lambda X, y, rng: lambda Z: returned).fit(X)


# Given partitions ---------------------------------------------------------------------------------


def test_membership_matrices():
    # The partition of equation 4, {{a, e}, {c}, {d, b, f}}, and a film that c and d have seen.
    columns = np.array([[0, 2, 1, 2, 0, 2], [0, 0, 1, 1, 0, 0]]).T
    K = MembershipKernel().fit(columns)(columns)
    for a in range(6):
        for b in range(6):
            assert K[a, b] == np.mean(columns[a] == columns[b])
    sparse = MembershipKernel().fit(csr_array(columns))
    assert np.array_equal(sparse(csr_array(columns)), K)
    assert np.array_equal(sparse(columns), K)
    assert np.array_equal(sparse(np.array([[7.0, 0.0]]), columns)[0], (columns[:, 1] == 0) / 2)


def test_films_drawn_at_random_approach_all_films():
    seen = np.random.default_rng(0).random((12, 30)) < 0.3
    exact = MembershipKernel().fit(seen)(seen)
    drawn = MembershipKernel(20_000, random_state=0).fit(seen)(seen)
    assert np.all(np.abs(drawn - exact) <= 5.0 * np.sqrt(exact * (1 - exact) / 20_000))


# All kernels --------------------------------------------------------------------------------------

KERNELS = [
    RandomForestKernel(20, random_state=0),
    RandomForestKernel(20, forest=MondrianForestRegressor(), random_state=0),
    FastClusterKernel(20, random_state=0),
    RandomPartitionKernel(KMeans(4, n_init=1), 8, random_state=0),
    RandomPartitionKernel(AgglomerativeClustering(4), 8, max_samples=0.5, random_state=0),
    MembershipKernel(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_views_of_a_kernel_agree(kernel):
    X, y = make_data(40)
    new, _ = make_data(15, seed=5)
    kernel.fit(X.round(), y)
    X, new = X.round(), new.round()
    K, cross = kernel(X), kernel(new, X)
    assert np.allclose(np.diag(K), 1.0)
    assert np.array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-12
    both = kernel(np.vstack([new, X]))
    assert np.allclose(both[:15, 15:], cross, atol=1e-15)
    features, new_features = kernel.transform(X), kernel.transform(new)
    assert features.shape == (40, kernel.n_clusters_.sum())
    assert np.allclose((new_features @ features.T).toarray(), cross, atol=1e-12)
    assert np.allclose((features @ features.T).toarray(), K, atol=1e-12)
    v = np.random.default_rng(0).normal(size=40)
    assert np.allclose(kernel.gram(X) @ v, K @ v, atol=1e-12)
    assert np.allclose(kernel.cross_gram(new, X) @ v, cross @ v, atol=1e-12)

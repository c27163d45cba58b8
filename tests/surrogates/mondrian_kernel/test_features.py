"""Features approximate the Laplace kernel; online extension keeps what was there."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency
from sklearn.metrics.pairwise import laplacian_kernel

from mondrian_bo.surrogates import (
    LaplaceFourierFeatures,
    MondrianFeatures,
    RandomBinningFeatures,
)

MAPS = [MondrianFeatures, RandomBinningFeatures, LaplaceFourierFeatures]
POINTS = np.array([[0.0, 0.0], [0.1, 0.3], [0.9, 0.2], [0.2, 0.25], [0.9, 0.9]])


def laplace(X, Y, lifetime, weights):
    return np.exp(-lifetime * np.abs(X[:, None] - Y[None]) @ np.asarray(weights))


def dense(matrix):
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


@pytest.mark.parametrize("make", MAPS)
@pytest.mark.parametrize("weights", [None, [2.0, 0.5], [1.0, 0.0]])
@pytest.mark.parametrize("lifetime", [0.7, 4.0])
def test_mean_is_the_laplace_kernel(make, weights, lifetime):
    n = 6000
    features = make(n, lifetime, feature_weights=weights, random_state=1)
    Z = dense(features.fit_transform(POINTS))
    expected = laplace(POINTS, POINTS, lifetime, weights or [1.0, 1.0])
    # Five standard errors: of indicators, and of products of cosines.
    variance = 1.0 if make is LaplaceFourierFeatures else expected * (1.0 - expected)
    assert np.all(np.abs(Z @ Z.T - expected) <= 5.0 * np.sqrt(variance / n) + 1e-12)


@pytest.mark.parametrize("make", MAPS)
def test_error_falls_as_the_root_of_the_number_of_features(make):
    X = np.random.default_rng(0).random((30, 2))
    exact = laplacian_kernel(X, gamma=3.0)
    errors = {}
    for n in (25, 400):
        runs = [dense(make(n, 3.0, random_state=seed).fit_transform(X)) for seed in range(20)]
        errors[n] = np.sqrt(np.mean([(Z @ Z.T - exact) ** 2 for Z in runs]))
    assert 3.2 < errors[25] / errors[400] < 5.0


@pytest.mark.parametrize("make", [MondrianFeatures, RandomBinningFeatures])
def test_rows_are_sparse_and_normalised(make):
    X = np.random.default_rng(0).random((40, 3))
    Z = make(7, 2.0, random_state=0).fit_transform(X)
    assert Z.format == "csr"
    assert Z.has_canonical_format
    assert np.array_equal(np.diff(Z.indptr), np.full(40, 7))
    assert np.allclose(Z.data, 7**-0.5)
    # Every column holds a row, and each row is in one cell of each partition.
    assert np.all(np.asarray(Z.astype(bool).sum(axis=0)) > 0)


@pytest.mark.parametrize("make", [MondrianFeatures, RandomBinningFeatures])
def test_lifetime_zero_has_one_cell(make):
    Z = make(4, 0.0, random_state=0).fit_transform(POINTS)
    assert Z.shape == (5, 4)


def test_transform_of_learnt_inputs_is_exact():
    X = np.random.default_rng(0).normal(size=(200, 3))
    features = MondrianFeatures(9, 1.3, random_state=3)
    Z = features.fit_transform(X)
    assert (features.transform(X) != Z).nnz == 0
    assert (Z[17:30] != features.transform(X[17:30])).nnz == 0


def test_old_rows_stay_valid_online():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    features = MondrianFeatures(8, 1.5, random_state=0)
    Z = features.fit_transform(X[:20])
    widths = [Z.shape[1]]
    for start in range(20, 300, 40):
        features.partial_fit(X[start : start + 40])
        widths.append(features.transform(X[:1]).shape[1])
        again = features.transform(X[:20])
        assert np.array_equal(again[:, : Z.shape[1]].toarray(), Z.toarray())
        assert again[:, Z.shape[1] :].nnz == 0
        assert np.allclose(features.transform(X[: start + 40]).data, 8**-0.5)
    assert widths == sorted(widths)
    assert widths[-1] > widths[0]
    cells = features.partitions_.cells.copy()
    final = features.transform(X)
    assert np.array_equal(features.partitions_.cells, cells)
    assert np.all(np.asarray(final.sum(axis=0)) > 0)
    assert len(features.get_feature_names_out()) == widths[-1]


def test_stream_may_be_divided_at_will():
    X = np.random.default_rng(1).random((60, 2))
    one = MondrianFeatures(5, 4.0, random_state=0).fit(X[:10]).partial_fit(X[10:])
    many = MondrianFeatures(5, 4.0, random_state=0).fit(X[:10])
    for x in X[10:]:
        many.partial_fit([x])
    assert (one.transform(X) != many.transform(X)).nnz == 0


def partition_patterns(features, rows=slice(None)):
    """The partition that each tree makes of learnt rows: the first row of each row's cell."""
    return [
        tuple(int(np.flatnonzero(cells == cell)[0]) for cell in cells)
        for cells in features.partitions_.cells[rows].T
    ]


def same_distribution(one, other):
    """P-value of a chi-square test that two samples of patterns have one distribution."""
    kinds = sorted(set(one) | set(other))
    table = np.array([[sample.count(kind) for kind in kinds] for sample in (one, other)])
    rare = table.sum(axis=0) < 20
    if rare.any():
        table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    return chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


N_PATTERNS = 5000


def fitted(X, lifetime, seed):
    return MondrianFeatures(N_PATTERNS, lifetime, random_state=seed).fit(X)


def test_conditional_extension_has_the_distribution_of_the_whole():
    """Balog2016thesis, Theorem 1.14: partitions of four points, given at once or two after two."""
    X = POINTS[[0, 3, 1, 2]]
    batch, online = fitted(X, 1.5, 0), fitted(X[:2], 1.5, 1)
    for x in X[2:]:
        online.partial_fit([x])
    patterns = partition_patterns(batch)
    assert len(set(patterns)) > 5
    assert same_distribution(patterns, partition_patterns(online)) > 1e-3


def test_restriction_has_the_distribution_of_the_part():
    """Balog2016thesis, Theorem 1.11: the partitions of three points do not depend on others."""
    whole, part = fitted(POINTS, 1.5, 2), fitted(POINTS[1:4], 1.5, 3)
    assert (
        same_distribution(partition_patterns(whole, slice(1, 4)), partition_patterns(part)) > 1e-3
    )


def test_other_distribution_is_noticed():
    """The test statistic above sees a lifetime that is 15 % longer."""
    samples = [partition_patterns(fitted(POINTS, lifetime, 4)) for lifetime in (1.5, 1.725)]
    assert same_distribution(*samples) < 1e-3


@pytest.mark.parametrize("x", [[0.5, 0.5], [-0.3, 0.1], [1.4, 1.2], [0.15, 0.27]])
def test_new_inputs_get_expected_features(x):
    """Given one partition, features are means over its extensions to the input."""
    n = 4000
    features = MondrianFeatures(n, 1.2, random_state=5).fit(POINTS)
    partitions = features.partitions_
    # The same partition in all trees, but random streams of their own.
    for name, field in partitions.arrays._asdict().items():
        if name != "stream":
            field[:] = field[:1]
    partitions.assign_cells(partitions.lifetime)
    row = features.transform([x]).data * n**0.5
    assert np.ptp(row) == 0.0
    n_cells = partitions.n_cells
    features.partial_fit([x])
    stayed = np.mean(partitions.cells[-1] < n_cells)
    assert abs(stayed - row[0]) < 4.0 * np.sqrt(row[0] * (1.0 - row[0]) / n) + 1e-12
    # Where no split separated it, it is in the located cell.
    inside = np.flatnonzero(partitions.cells[-1] < n_cells)
    located, _ = partitions.locate(np.array([[x]]))
    assert np.array_equal(located[0, inside], partitions.cells[-1, inside])


def test_kernel_with_new_inputs_is_unbiased():
    X, new = POINTS, np.array([[0.5, 0.6], [-0.2, 0.0], [1.3, 0.2]])
    features = MondrianFeatures(6000, 1.5, random_state=0).fit(X)
    product = (features.transform(new) @ features.transform(X).T).toarray()
    assert np.allclose(product, laplace(new, X, 1.5, [1.0, 1.0]), atol=0.03)


@pytest.mark.parametrize("weights", [None, [0.3, 2.0]])
def test_kernel_values_of_any_inputs_are_unbiased(weights):
    rng = np.random.default_rng(8)
    fitted, one, two = rng.random((6, 2)), 3.0 * rng.random((5, 2)) - 1.0, 3.0 * rng.random((4, 2))
    one[0], two[0] = fitted[0], 1e3
    features = MondrianFeatures(8000, lifetime=1.5, feature_weights=weights, random_state=3).fit(
        fitted
    )
    before = features.transform(fitted)
    scale = np.ones(2) if weights is None else np.array(weights)
    for X, Y in ((one, None), (one, two), (two, fitted), (two[:1], None)):
        found = features.kernel(X, Y)
        other = X if Y is None else Y
        expected = laplacian_kernel(X * scale, other * scale, gamma=1.5)
        error = np.sqrt(expected * (1.0 - expected) / 8000)
        assert np.all(np.abs(found - expected) <= 5.0 * error + 1e-12)
        assert np.array_equal(found, features.kernel(X, Y))
    own = features.kernel(one)
    assert np.allclose(np.diag(own), 1.0)
    assert np.linalg.eigvalsh(own).min() > -1e-9
    # What `transform` gives is smaller than the kernel for an unseen input and itself.
    row = features.transform(one[1:2])
    assert (row @ row.T)[0, 0] < 0.95 * own[1, 1]
    # The features do not change.
    assert (features.transform(fitted) != before).nnz == 0


def test_far_inputs_have_no_features():
    row = MondrianFeatures(5, 1.0, random_state=0).fit(POINTS).transform([[1e3, 0.0]])
    assert row.data.max() < 1e-300


def test_workers_do_not_matter():
    X = np.random.default_rng(0).random((50, 2))
    one, two = (MondrianFeatures(6, 3.0, random_state=0, n_jobs=n).fit_transform(X) for n in (1, 2))
    assert (one != two).nnz == 0


def test_unknown_bins_are_zero():
    features = RandomBinningFeatures(5, 3.0, random_state=0).fit([[0.0], [0.1]])
    assert features.transform([[1e3]]).data.max() == 0.0
    assert features.transform([[1e300]]).data.max() == 0.0


@pytest.mark.parametrize("make", MAPS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_estimators": 0}, "n_estimators"),
        ({"lifetime": -1.0}, "lifetime"),
        ({"feature_weights": [1.0]}, r"feature_weights must have shape \(2,\)"),
        ({"feature_weights": [0.0, 0.0]}, "not all zero"),
    ],
)
def test_wrong_parameters(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options).fit(POINTS)


def test_wrong_input_changes_nothing():
    features = MondrianFeatures(3, random_state=0).fit(POINTS)
    before = features.transform(POINTS).toarray()
    with pytest.raises(ValueError, match="NaN"):
        features.partial_fit([[np.nan, 0.0]])
    with pytest.raises(ValueError, match="feature"):
        features.transform([[1.0]])
    assert np.array_equal(features.transform(POINTS).toarray(), before)


# Random lifetimes ---------------------------------------------------------------------------------


def rational(X, Y, lifetime, weights, shape):
    distance = np.abs(X[:, None] - Y[None]) @ np.asarray(weights)
    return (1.0 + lifetime * distance / shape) ** -shape


@pytest.mark.parametrize("shape", [0.5, 1.0, 4.0])
def test_gamma_lifetimes_give_a_rational_kernel(shape):
    """Five standard errors, for fitted inputs, for others, and after `partial_fit`."""
    n, lifetime, weights = 6000, 3.0, [2.0, 0.5]
    features = MondrianFeatures(
        n, lifetime, feature_weights=weights, lifetime_shape=shape, random_state=1
    )
    fitted, others = POINTS[:3], POINTS[3:]
    Z = features.fit_transform(fitted)
    inner = (Z @ Z.T).toarray(), (features.transform(others) @ Z.T).toarray()
    estimates = *inner, features.kernel(others)
    features.partial_fit(others)
    grown = features.transform(POINTS)
    pairs = [(fitted, fitted), (others, fitted), (others, others), (POINTS, POINTS)]
    for estimate, (left, right) in zip(
        (*estimates, (grown @ grown.T).toarray()), pairs, strict=True
    ):
        expected = rational(left, right, lifetime, weights, shape)
        bound = 5.0 * np.sqrt(expected * (1.0 - expected) / n) + 1e-12
        assert np.all(np.abs(estimate - expected) <= bound)


def test_large_shapes_give_the_laplace_kernel():
    n, lifetime = 6000, 3.0
    X = np.random.default_rng(0).random((8, 2))
    exact = laplace(X, X, lifetime, [1.0, 1.0])
    gaps = [
        abs(rational(X, X, lifetime, [1.0, 1.0], shape) - exact).max() for shape in (1, 10, 1e3)
    ]
    assert gaps[0] > 5.0 * gaps[1] > 25.0 * gaps[2]
    features = MondrianFeatures(n, lifetime, lifetime_shape=1e8, random_state=0)
    Z = features.fit_transform(X)
    assert np.allclose(features.factors_, 1.0, atol=1e-3)
    deviation = np.sqrt(exact * (1.0 - exact) / n)
    assert np.all(np.abs((Z @ Z.T).toarray() - exact) <= 5.0 * deviation + 1e-12)


def test_without_a_shape_lifetimes_are_equal():
    features = MondrianFeatures(20, 3.0, random_state=0).fit(POINTS)
    assert np.array_equal(features.factors_, np.ones(20))
    with pytest.raises(ValueError, match="lifetime_shape"):
        MondrianFeatures(lifetime_shape=0.0).fit(POINTS)


def test_frequencies_times_inputs_that_overflow():
    features = LaplaceFourierFeatures(50, random_state=0).fit(np.zeros((2, 1)))
    with pytest.raises(ValueError, match="products with the frequencies overflow"):
        features.transform([[1e308]])

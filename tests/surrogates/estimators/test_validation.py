"""Validation of the estimators' input."""

from inspect import signature

import numpy as np
import pytest
from sklearn.base import clone

from mondrian_bo import surrogates
from mondrian_bo.surrogates import (
    AMFClassifier,
    AMFRegressor,
    FastClusterKernel,
    GaussianProcessForestRegressor,
    MondrianDensityClassifier,
    MondrianForestClassifier,
    MondrianForestRegressor,
    MondrianGridRegressor,
    MondrianKernelClassifier,
    MondrianKernelRegressor,
    MondrianKernelSVR,
    OnlineDummyRegressor,
    PartitionGaussianProcessRegressor,
    PartitionSVC,
    sgd_lifetime_path,
)
from mondrian_bo.surrogates.estimators.validation import check_squares, check_training_data

ABOVE = np.nextafter(1e145, np.inf)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("largest", [0.0, 1.0, 1e72, 1e73, 1e145, ABOVE, 1e160, 1e308])
@pytest.mark.parametrize("n", [0, 1, 2, 2000])
def test_squares_of_targets(n, largest, sign):
    targets = np.linspace(0.0, 1.0, n)
    targets[-1:] = sign * largest
    if n > 0 and largest > 1e145:
        with pytest.raises(
            ValueError, match=r"y has values beyond 1e\+145, whose squares overflow"
        ):
            check_squares(targets)
    else:
        check_squares(targets)


REGRESSORS = [
    AMFRegressor,
    GaussianProcessForestRegressor,
    MondrianForestRegressor,
    OnlineDummyRegressor,
]


@pytest.mark.parametrize("regressor", REGRESSORS)
@pytest.mark.parametrize(
    ("targets", "found"),
    [
        (["a", "b", "c"], "'a' of type str"),
        (np.array([1.0, 2.0, "c"], dtype=object), "'c' of type str"),
        (np.array([b"1", b"2", b"3"]), "b'1' of type bytes"),
        ([1.0, None, 3.0], "None of type NoneType"),
        (np.array([1, 2, 3], dtype="datetime64[ns]"), r"dtype datetime64\[ns\]"),
        (np.array([1, 2, 3], dtype="timedelta64[D]"), r"dtype timedelta64\[D\]"),
    ],
)
def test_targets_that_are_no_numbers(regressor, targets, found):
    X = np.arange(6.0).reshape(3, 2)
    model = regressor()
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=f"y must hold numbers.* got {found}.*classifier"):
            learn(X, targets)
        assert not hasattr(model, "n_features_in_")
    model.fit(X, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=f"y must hold numbers.* got {found}"):
        model.partial_fit(X, targets)


TEXT = np.array(["a", "b", "c"])
"""Targets of a classifier."""


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (PartitionGaussianProcessRegressor(FastClusterKernel(2)), "fit"),
        (MondrianKernelSVR(), "fit"),
        (MondrianKernelSVR(), "lifetime_path"),
        (MondrianKernelRegressor(), "lifetime_path"),
        (MondrianGridRegressor(), "grid_model"),
    ],
)
def test_other_methods_name_targets_that_are_no_numbers(model, method):
    with pytest.raises(ValueError, match=r"y must hold numbers.* got 'a' of type str"):
        getattr(model, method)(np.arange(3.0)[:, None], TEXT)


def test_log_density_names_targets_that_are_no_numbers():
    X, y = np.arange(3.0)[:, None], np.arange(3.0)
    process = PartitionGaussianProcessRegressor(FastClusterKernel(2, random_state=0)).fit(X, y)
    for density in (MondrianForestRegressor().fit(X, y).logpdf, process.log_predictive_density):
        with pytest.raises(ValueError, match=r"y must hold numbers.* got 'a' of type str"):
            density(X, TEXT)


@pytest.mark.parametrize("regressor", REGRESSORS)
def test_targets_beyond_the_range_of_floats(regressor):
    X, y = np.arange(6.0).reshape(3, 2), [1.0, 2.0, -(10**400)]
    model = regressor()
    for learn in (model.fit, model.partial_fit, model.fit(X, X[:, 0]).partial_fit):
        with pytest.raises(ValueError, match="y has values that are too large for float64"):
            learn(X, y)
    if hasattr(model, "logpdf"):
        with pytest.raises(ValueError, match="y has values that are too large for float64"):
            model.logpdf(X, y)


@pytest.mark.filterwarnings("error")
def test_complex_numbers_are_not_cut():
    X, y = np.arange(3.0)[:, None], np.arange(3.0)
    wrong = y + 1j
    for model in (MondrianForestRegressor(), AMFRegressor()):
        with pytest.raises(ValueError, match="y must hold real numbers, got complex ones"):
            model.fit(X, y).logpdf(X, wrong)
    process = PartitionGaussianProcessRegressor(FastClusterKernel(2, random_state=0)).fit(X, y)
    for joint in (True, False):
        with pytest.raises(ValueError, match="y must hold real numbers, got complex ones"):
            process.log_predictive_density(X, wrong, joint=joint)
    for weights in (wrong, wrong.tolist()):
        with pytest.raises(ValueError, match="sample_weight must hold real numbers, got complex"):
            AMFRegressor().partial_fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match="feature_weights must hold real numbers, got complex"):
        MondrianForestRegressor(feature_weights=np.array([1j])).fit(X, y)
    with pytest.raises(ValueError, match="bounds must hold real numbers, got complex"):
        MondrianForestRegressor(bounds=np.array([[0.0, 1j]])).fit(X, y)


@pytest.mark.parametrize("wrong", [{}, 10**400], ids=["object", "large"])
def test_weights_that_are_no_numbers(wrong):
    with pytest.raises(ValueError, match=r"sample_weight must hold real numbers \("):
        AMFRegressor().partial_fit(np.eye(2), [0.0, 1.0], sample_weight=[1.0, wrong])


def test_validation_targets_that_are_no_numbers():
    X, y = np.arange(3.0)[:, None], np.arange(3.0)
    for model in (MondrianKernelRegressor(), MondrianKernelSVR()):
        with pytest.raises(ValueError, match=r"y_val must hold numbers.* got 'a' of type str"):
            model.lifetime_path(X, y, X, TEXT)
    with pytest.raises(ValueError, match=r"y_val has 'c', which is not among the classes of y"):
        MondrianKernelClassifier().lifetime_path(X, ["a", "b", "a"], X, TEXT)


@pytest.mark.parametrize(
    "classifier",
    [
        AMFClassifier,
        MondrianDensityClassifier,
        MondrianForestClassifier,
        MondrianKernelClassifier,
        PartitionSVC,
    ],
)
def test_labels_of_two_types(classifier):
    X = np.arange(8.0).reshape(4, 2)
    model = classifier()
    with pytest.raises(ValueError, match="class labels must be all numbers or all strings"):
        model.fit(X, ["a", None, "a", None])
    assert not hasattr(model, "classes_")
    if hasattr(model, "partial_fit"):
        for fitted in (model, classifier().partial_fit(X, ["a", "b", "a", "b"])):
            with pytest.raises(ValueError, match="class labels must be all numbers or all strings"):
                fitted.partial_fit(X, ["a", "b", "a", "b"], classes=["a", None])


@pytest.mark.parametrize("name", [name for name in surrogates.__all__ if name[0].isupper()])
def test_no_threads_are_refused(name):
    kind = getattr(surrogates, name)
    if "n_jobs" not in signature(kind).parameters:
        return
    X, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"'n_jobs' parameter.* Got 0 instead"):
        kind(n_jobs=0).fit(X, y)
    if hasattr(kind, "lifetime_path"):
        with pytest.raises(ValueError, match=r"n_jobs.*[gG]ot 0"):
            kind(n_jobs=0).lifetime_path(X, y)


def test_no_threads_are_refused_on_lifetime_paths():
    X, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"n_jobs must be an integer other than 0.*got 0"):
        sgd_lifetime_path(X, y, loss="hinge", n_jobs=0)


def test_numbers_of_any_type_are_targets():
    X = np.arange(6.0).reshape(3, 2)
    for targets in ([1, 2, 3], [True, False, True], np.array([1, 2.5, 3], dtype=object)):
        data, values = check_training_data(OnlineDummyRegressor(), X, targets)
        assert values.dtype == np.float64 and np.array_equal(values, np.asarray(targets, float))
        assert np.array_equal(data, X)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (AMFRegressor, np.float32),
        (AMFClassifier, np.float32),
        (GaussianProcessForestRegressor, np.float64),
        (MondrianForestRegressor, np.float64),
        (MondrianForestClassifier, np.float64),
    ],
)
@pytest.mark.parametrize("n", [4, 2000])
def test_inputs_whose_differences_overflow(kind, dtype, n):
    largest = np.finfo(dtype).max
    X, y = np.random.default_rng(0).random((n, 2)), np.arange(n) % 2
    model = kind(2, random_state=0).partial_fit(X, y)
    before = model.predict(X)
    wrong = X.copy()
    wrong[-2:, 0] = -0.6 * largest, 0.6 * largest
    for learn in (model.partial_fit, kind(2).partial_fit, kind(2).fit):
        with pytest.raises(ValueError, match=r"X has values beyond .*, whose differences overflow"):
            learn(wrong, y)
    assert np.array_equal(model.predict(X), before)
    wrong[-2:, 0] = -0.4 * largest, 0.4 * largest
    model.partial_fit(wrong, y)
    assert np.all(np.isfinite(model.predict(wrong)))


def test_wrong_numbers_are_named():
    X, y = np.eye(2), np.arange(2.0)
    with pytest.raises(
        ValueError, match=r"bounds must be finite .* got \[3.0, 1.0\] for feature 1"
    ):
        MondrianForestRegressor(bounds=[[0, 1], [3, 1]]).fit(X, y)
    with pytest.raises(ValueError, match=r"feature_weights must be finite.*; got \[1.0, -2.0\]"):
        MondrianForestRegressor(feature_weights=[1, -2]).fit(X, y)
    with pytest.raises(ValueError, match=r"sample_weight must be non-negative .*; got -3"):
        AMFRegressor().partial_fit(X, y, sample_weight=[1.0, -3.0])


@pytest.mark.parametrize(
    "kind",
    [AMFRegressor, MondrianForestRegressor, MondrianForestClassifier, MondrianKernelRegressor],
)
def test_true_counts_as_one_tree(kind):
    X, y = np.random.default_rng(0).random((9, 2)), np.arange(9) % 2
    found = [kind(n, random_state=0).fit(X, y).predict(X) for n in (True, 1)]
    assert np.array_equal(*found)


@pytest.mark.parametrize("n", [100, 500, 1000])
def test_weights_that_grow_have_a_limit_that_names_the_remedy(n):
    """The page on drift has a limit of about 69 n samples for weights that grow by 1 + 1/n."""
    few = [(1.0 + 1.0 / n) ** (69 * n)]
    model = OnlineDummyRegressor().partial_fit([[0.0]], [1.0], sample_weight=few)
    many = [(1.0 + 1.0 / n) ** (70 * n)]
    with pytest.raises(ValueError, match=r"at most 1e\+30; got .*start a new estimator"):
        model.partial_fit([[0.0]], [1.0], sample_weight=many)
    with pytest.raises(ValueError, match=r"at most 1e\+30; got -1$"):
        model.partial_fit([[0.0]], [1.0], sample_weight=[-1.0])
    assert model.weight_ == few[0]


@pytest.mark.parametrize(
    "make", [OnlineDummyRegressor, lambda: AMFRegressor(2, random_state=0)], ids=["dummy", "amf"]
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_weighted_squares_of_targets_stay_finite(make, sign):
    X, y = np.arange(20.0)[:, None], sign * np.linspace(0.0, 1.0, 20)
    too_large = r"sample_weight of up to 1e\+30 times squares .* overflows: .* at most 1e\+290"
    for largest in (1e145, 2e130):
        model = make().partial_fit(X, 1e130 * y)
        before = model.predict(X, return_std=True)
        with pytest.raises(ValueError, match=too_large):
            model.partial_fit(X, largest * y, sample_weight=np.full(20, 1e30))
        np.testing.assert_array_equal(model.predict(X, return_std=True), before)
    for weight, largest in [(1e30, 1e130), (1.0, 1e145)]:
        model = make()
        for _ in range(5):
            model.partial_fit(X, largest * y, sample_weight=np.full(20, weight))
        for found in model.predict(X, return_std=True):
            assert np.all(np.isfinite(found))


def test_weighted_squares_of_earlier_targets_stay_finite():
    """Earlier targets forecast later samples, whose weights may be larger."""
    X = np.arange(10.0)[:, None]
    model = AMFRegressor(2, random_state=0).partial_fit(X, np.linspace(-1e145, 0.0, 10))
    with pytest.raises(ValueError, match=r"targets of up to 1e\+145 overflows"):
        model.partial_fit(X, np.zeros(10), sample_weight=np.full(10, 1e30))
    model.partial_fit(X, np.zeros(10), sample_weight=np.full(10, 1e-9))
    assert np.all(np.isfinite(model.predict(X, return_std=True)))


@pytest.mark.parametrize(
    "estimator",
    [
        AMFRegressor(2, random_state=0),
        GaussianProcessForestRegressor(2, random_state=0),
        MondrianForestClassifier(random_state=0),
        MondrianForestRegressor(random_state=0),
        MondrianKernelRegressor(3, random_state=0),
    ],
)
def test_largest_feature_weights(estimator):
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    y = (X[:, 0] > 0.5).astype(float)
    with pytest.raises(ValueError, match=r"feature_weights must be at most 1e\+100"):
        clone(estimator).set_params(feature_weights=[1.0, 1e308]).fit(X, y)
    large = clone(estimator).set_params(feature_weights=[1e100, 1e100]).fit(X, y)
    assert np.isfinite(large.predict(X + 0.01)).all()

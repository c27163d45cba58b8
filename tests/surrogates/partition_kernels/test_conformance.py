"""scikit-learn's own checks, and its tools."""

import pickle

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from mondrian_bo.surrogates import (
    FastClusterKernel,
    MembershipKernel,
    MondrianForestRegressor,
    PartitionGaussianProcessRegressor,
    PartitionKernelPCA,
    PartitionSVC,
    RandomForestKernel,
    RandomPartitionKernel,
)


@parametrize_with_checks(
    [
        FastClusterKernel(5),
        MembershipKernel(),
        RandomForestKernel(5),
        RandomForestKernel(5, forest=RandomTreesEmbedding()),
        RandomForestKernel(5, forest=MondrianForestRegressor(), height="split_time"),
        RandomPartitionKernel(n_partitions=2),
        PartitionGaussianProcessRegressor(FastClusterKernel(50, random_state=0)),
        PartitionGaussianProcessRegressor(
            RandomForestKernel(20, random_state=0),
            solver="cg",
            signal_variance=1.0,
            noise_variance=0.01,
        ),
        PartitionKernelPCA(1, kernel=FastClusterKernel(20, random_state=0)),
        PartitionGaussianProcessRegressor(),
        PartitionKernelPCA(1),
        PartitionSVC(),
        PartitionSVC(FastClusterKernel(50, random_state=0)),
        PartitionSVC(RandomForestKernel(20, random_state=0), solver="cg"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make_classes(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1]
    return X, np.where(X[:, 0] * X[:, 1] > 0, "same", "different")


KERNELS = [FastClusterKernel(60, random_state=0), RandomForestKernel(30, random_state=0)]


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_serve_the_machines_of_scikit_learn(kernel):
    X, y = make_classes()
    new, truth = make_classes(60, seed=1)
    X, new = X / [1.0, 10.0, 0.1], new / [1.0, 10.0, 0.1]
    kernel = clone(kernel).fit(X, y)
    by_call = SVC(kernel=kernel).fit(X, y)
    precomputed = SVC(kernel="precomputed").fit(kernel(X), y)
    values = precomputed.decision_function(kernel(new, X))
    assert np.allclose(by_call.decision_function(new), values, atol=1e-10)
    assert by_call.score(new, truth) > 0.75
    linear = make_pipeline(clone(kernel), LinearSVC()).fit(X, y)
    assert linear.score(new, truth) > 0.75


def test_pipeline_and_grid_search():
    X, y = make_classes()
    pipeline = make_pipeline(StandardScaler(), PartitionSVC(FastClusterKernel(random_state=0)))
    name = "partitionsvc__kernel__max_height"
    search = GridSearchCV(pipeline, {name: [0, 5]}, cv=3).fit(X, y)
    # With max_height=0 all points are in one cluster.
    assert search.best_params_ == {name: 5}
    assert search.best_score_ > 0.8
    features = make_pipeline(StandardScaler(), FastClusterKernel(random_state=0), LinearSVC())
    options = {"fastclusterkernel__max_height": [0, 5]}
    assert GridSearchCV(features, options, cv=3).fit(X, y).best_score_ > 0.8


@pytest.mark.parametrize(
    "model",
    [
        PartitionGaussianProcessRegressor(random_state=0),
        PartitionSVC(),
        PartitionKernelPCA(random_state=0),
    ],
)
def test_frozen_kernels_know_more_inputs(model):
    X, _ = make_classes(300)
    y = (X[:, 0] > 0).astype(float)
    kernel = FastClusterKernel(40, random_state=0).fit(X)
    own = model.set_params(kernel=FrozenEstimator(kernel)).fit(X[:50], y[:50])
    assert np.array_equal(own.kernel_.assign(X), kernel.assign(X))
    result = own.predict(X) if hasattr(own, "predict") else own.transform(X)
    assert len(result) == 300


@pytest.mark.parametrize(
    "model",
    [
        PartitionGaussianProcessRegressor(random_state=0),
        PartitionSVC(),
        PartitionKernelPCA(random_state=0),
    ],
)
def test_frozen_kernels_know_the_names_of_features(model, recwarn):
    pandas = pytest.importorskip("pandas")
    X, _ = make_classes(100)
    y = (X[:, 0] > 0).astype(float)
    frame = pandas.DataFrame(X, columns=[f"x{d}" for d in range(X.shape[1])])
    kernel = FastClusterKernel(20, random_state=0).fit(frame)
    own = clone(model).set_params(kernel=FrozenEstimator(kernel))
    result = own.fit(frame, y)
    known = result.predict(frame) if hasattr(own, "predict") else result.transform(frame)
    assert len(known) == 100
    assert not [one for one in recwarn if "feature names" in str(one.message)]
    with pytest.raises(ValueError, match="in the same order: got"):
        own.fit(frame[frame.columns[::-1]], y)


@pytest.mark.parametrize("kernel", [*KERNELS, RandomPartitionKernel(n_partitions=3)])
def test_seeds_and_pickles(kernel):
    X, y = make_classes()
    kernel = clone(kernel).set_params(random_state=4)
    K = kernel.fit(X, y)(X)
    assert np.array_equal(clone(kernel).fit(X, y)(X), K)
    assert np.array_equal(pickle.loads(pickle.dumps(kernel))(X), K)
    assert not np.array_equal(clone(kernel).set_params(random_state=5).fit(X, y)(X), K)


@pytest.mark.parametrize(
    "kernel",
    [*KERNELS, RandomPartitionKernel(n_partitions=3), MembershipKernel()],
    ids=lambda kernel: type(kernel).__name__,
)
def test_sparse_features_have_names(kernel):
    pytest.importorskip("pandas")
    X, y = make_classes()
    kernel = clone(kernel)
    with pytest.raises(NotFittedError):
        kernel.get_feature_names_out()
    features = kernel.fit(X, y).transform(X)
    prefix = type(kernel).__name__.lower()
    expected = [f"{prefix}{i}" for i in range(features.shape[1])]
    assert kernel.get_feature_names_out().tolist() == expected
    assert issparse(kernel.set_output(transform="default").transform(X))
    # The error of scikit-learn's own sparse transformers.
    with pytest.raises(ValueError, match="sparse"):
        kernel.set_output(transform="pandas").transform(X)
    assert kernel(X).shape == (120, 120)


def test_components_as_a_data_frame():
    pandas = pytest.importorskip("pandas")
    X, _ = make_classes()
    frame = pandas.DataFrame(X, columns=["a", "b", "c"], index=np.arange(120) + 7)
    model = PartitionKernelPCA(2, random_state=0).set_output(transform="pandas")
    components = model.fit_transform(frame)
    assert components.columns.tolist() == ["partitionkernelpca0", "partitionkernelpca1"]
    assert components.index.equals(frame.index)
    plain = model.set_output(transform="default").transform(frame)
    assert isinstance(plain, np.ndarray)
    assert np.array_equal(components.to_numpy(), plain)


def test_failures_change_nothing():
    X, _ = make_classes()
    kernel = FastClusterKernel(random_state=0).fit(X)
    K = kernel(X)
    with pytest.raises(ValueError, match="NaN"):
        kernel.fit(np.full((5, 7), np.nan))
    assert np.array_equal(kernel(X), K)
    with pytest.raises(ValueError, match="is expecting 3 features"):
        kernel.assign(X[:, :2])
    with pytest.raises(ValueError, match="1 class, same"):
        PartitionSVC().fit(X, np.full(len(X), "same"))
    with pytest.raises(ValueError, match="n_components=4 is more than n_samples=3"):
        PartitionKernelPCA(4).fit(X[:3])
    with pytest.raises(ValueError, match="'n_partitions' parameter"):
        FastClusterKernel(0).fit(X)


@pytest.mark.parametrize(
    "kind", [PartitionGaussianProcessRegressor, PartitionKernelPCA, PartitionSVC]
)
def test_the_default_kernel_has_the_seed_of_the_estimator(kind):
    X, y = make_classes()
    y = y if kind is PartitionSVC else X[:, 0]
    one, same = (kind(random_state=0).fit(X, y) for _ in range(2))
    other = kind(random_state=1).fit(X, y)
    given = kind(kernel=FastClusterKernel(random_state=0), random_state=1).fit(X, y)
    method = "transform" if kind is PartitionKernelPCA else "predict"
    found = [getattr(model, method)(X[:20] + 0.1) for model in (one, same)]
    assert np.array_equal(*found)
    assert np.array_equal(one.kernel_(X), same.kernel_(X))
    assert np.array_equal(one.kernel_(X), given.kernel_(X))
    assert not np.array_equal(one.kernel_(X), other.kernel_(X))

"""The hyper-parameters of scikit-learn models."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from threadpoolctl import threadpool_limits

from mondrian_bo.benchmarks.problems import SUITES, get_problem, learning


@pytest.fixture(autouse=True)
def single_threaded_blas():
    with threadpool_limits(1):  # as the runner has it
        yield


REAL = [name for name in SUITES["default"].problems if name.startswith("real_")]


@pytest.mark.parametrize("name", REAL)
def test_a_value_depends_on_the_parameters_alone(name):
    problem = get_problem(name)
    for module in problem.requires:
        pytest.importorskip(module, reason=f"needs {module}")
    points = [
        problem.space.from_unit(row) for row in problem.space.sample(4, np.random.default_rng(2))
    ]
    values = [problem.function(point) for point in points]
    assert np.isfinite(values).all()
    assert len(set(values)) > 1
    assert [problem.function(point) for point in reversed(points)] == values[::-1]


def test_support_vectors_by_hand():
    from sklearn.datasets import load_digits
    from sklearn.model_selection import StratifiedKFold
    from sklearn.svm import SVC

    x, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:400]
    x, y = x[rows], y[rows]
    errors = []
    for train, test in StratifiedKFold(3).split(x, y):
        model = SVC(C=10.0, gamma=1e-3, kernel="rbf").fit(x[train], y[train])
        errors.append(np.mean(model.predict(x[test]) != y[test]))
    value = get_problem("real_support_vectors").function(
        {"C": 10.0, "gamma": 1e-3, "kernel": "rbf"}
    )
    assert value == pytest.approx(np.mean(errors))


@pytest.mark.parametrize("model", ["support vectors", "logistic", "neighbours", "trees"])
def test_every_branch_of_the_pipeline_works(model):
    problem = get_problem("real_pipeline")
    rng = np.random.default_rng(0)
    points = map(problem.space.from_unit, problem.space.sample(100, rng))
    params = next(point for point in points if point["model"] == model)
    assert 0.0 <= problem.function(params) < 0.6


@pytest.mark.parametrize("fails", [lambda X: 0.0 not in X, lambda X: True], ids=["one", "all"])
def test_fits_that_fail_give_nan(fails):
    """Scikit-learn raises an error if all of them fail."""

    class Diverging(DummyClassifier):
        def fit(self, X, y):
            if fails(X):
                raise ValueError("diverged")
            return super().fit(X, y)

    data = learning._Data(np.arange(30.0)[:, None], np.tile([0, 1], 15))
    assert np.isnan(learning._cross_validated(Diverging(), data, "accuracy"))

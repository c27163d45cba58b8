"""Bayesmark's tasks, evaluated by a stub of its code, and by its code where that is installed."""

import json
import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logit

from mondrian_bo.benchmarks.harness.worker_process import shared_worker
from mondrian_bo.benchmarks.problems import SUITES, get_problem, installed_problems
from mondrian_bo.benchmarks.problems.bayesmark_tasks import BAYESMARK_PROBLEMS, PYTHON_VARIABLE
from mondrian_bo.search_space import Categorical, Float, Int

PYTHON = os.environ.get(PYTHON_VARIABLE)
needs_bayesmark = pytest.mark.skipif(
    not PYTHON, reason=f"{PYTHON_VARIABLE} does not name an interpreter that has Bayesmark"
)

STUB = """
import numpy as np

class SklearnModel:
    def __init__(self, model, dataset, metric):
        self.name = f"{model} {dataset} {metric}"

    def evaluate(self, params):
        assert self.name == "DT iris acc", self.name
        if params["max_depth"] == 13:
            raise RuntimeError("the fit failed")
        return params["max_features"] + np.random.random(), 1e9
"""


@pytest.fixture
def stub(tmp_path, monkeypatch):

    (tmp_path / "bayesmark").mkdir()
    (tmp_path / "bayesmark" / "__init__.py").write_text("")
    (tmp_path / "bayesmark" / "sklearn_funcs.py").write_text(STUB)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv(PYTHON_VARIABLE, sys.executable)
    shared_worker.cache_clear()
    yield
    shared_worker.cache_clear()


def point(depth, share):
    """Return parameters of the tree with given depth and share of features."""
    problem = get_problem("bayesmark_DT_iris_acc")
    middle = {name: (one.low + one.high) / 2 for name, one in problem.space.items()}
    return {**middle, "max_depth": depth, "max_features": float(logit(share))}


def test_all_tasks_and_the_quick_ones():
    models = ("DT", "MLP-adam", "MLP-sgd", "RF", "SVM", "ada", "kNN", "lasso", "linear")
    classified = product(models, ("breast", "digits", "iris", "wine"), ("acc", "nll"))
    other = product(models, ("boston", "diabetes"), ("mae", "mse"))
    names = {f"bayesmark_{'_'.join(parts)}" for parts in (*classified, *other)}
    assert len(names) == 108 == len(SUITES["bayesmark"].problems)
    assert set(SUITES["bayesmark"].problems) == names
    quick = SUITES["bayesmark_quick"].problems
    assert len(quick) == 66 and set(quick) < names
    # The same random order: the quick tasks are a part of the sequence.
    assert list(quick) == [name for name in SUITES["bayesmark"].problems if name in set(quick)]
    assert list(quick) != sorted(quick)


def test_logit_scales():
    """The space has logits; the model gets shares, and bounds exactly."""
    task = get_problem("bayesmark_MLP-adam_wine_nll").task
    ranges = {"validation_fraction": (0.1, 0.9), "beta_1": (0.5, 0.99), "beta_2": (0.9, 1 - 1e-6)}
    for name, (low, high) in ranges.items():
        parameter = task.space[name]
        np.testing.assert_allclose([parameter.low, parameter.high], logit([low, high]))
        assert not parameter.log
        rng = np.random.default_rng(0)
        for value in rng.uniform(parameter.low, parameter.high, 20):
            params = {one: getattr(p, "low", None) for one, p in task.space.items()}
            unwarped = task.unwarp({**params, name: value})
            assert unwarped[name] == pytest.approx(expit(value), rel=1e-12)
            assert low <= unwarped[name] <= high
        for end in (parameter.low, parameter.high):
            assert low <= task.unwarp({**params, name: end})[name] <= high


def test_other_scales_are_optunas():
    task = get_problem("bayesmark_lasso_boston_mse").task
    assert dict(task.space) == {
        "alpha": Float(1e-2, 1e2, log=True),
        "fit_intercept": Categorical((False, True)),
        "max_iter": Int(10, 5000, log=True),
        "normalize": Categorical((False, True)),
        "positive": Categorical((False, True)),
        "tol": Float(1e-5, 1e-1, log=True),
    }
    params = {"alpha": 0.3, "fit_intercept": True, "max_iter": 70, "normalize": False}
    params |= {"positive": True, "tol": 1e-3}
    assert task.unwarp(params) == params


def test_each_evaluation_has_random_numbers_of_its_own(stub):
    problem = get_problem("bayesmark_DT_iris_acc")
    first, second = problem.instance(5), problem.instance(5)
    values = [first(point(3, 0.4)) for _ in range(3)]
    expected = [0.4 + np.random.RandomState([5, number]).random_sample() for number in range(3)]
    np.testing.assert_allclose(values, expected)
    # Another sampler's evaluations with the same seed have the same random numbers.
    np.testing.assert_allclose([second(point(3, 0.4)) for _ in range(3)], expected)
    assert problem.instance(6)(point(3, 0.4)) != pytest.approx(expected[0])
    assert problem.function(point(3, 0.4)) == problem.function(point(3, 0.4))


def test_a_failing_evaluation_is_infinite(stub):
    problem = get_problem("bayesmark_DT_iris_acc")
    assert problem.function(point(13, 0.5)) == float("inf")
    assert np.isfinite(problem.function(point(12, 0.5)))


def test_an_interpreter_without_bayesmark(monkeypatch, tmp_path):
    (tmp_path / "bayesmark.py").write_text("raise ImportError('not here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    monkeypatch.setenv(PYTHON_VARIABLE, sys.executable)
    shared_worker.cache_clear()
    with pytest.raises(ValueError, match="cannot run Bayesmark; see `python -m"):
        get_problem("bayesmark_DT_iris_acc").function(point(3, 0.5))
    shared_worker.cache_clear()


def test_tasks_are_left_out_without_an_interpreter(monkeypatch):
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    notices = []
    names = ["branin", "bayesmark_ada_wine_nll"]
    assert installed_problems(names, notices.append) == ["branin"]
    (notice,) = notices
    assert "make_environment bayesmark" in notice and "bayesmark_ada_wine_nll" in notice
    monkeypatch.setenv(PYTHON_VARIABLE, "python")
    assert installed_problems(names, notices.append) == names


def ask_bayesmark(code):
    """Run code in Bayesmark's environment and return what it prints as JSON."""
    command = [PYTHON, "-W", "ignore", "-c", code]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


@needs_bayesmark
def test_spaces_are_bayesmarks():
    """Kinds, and the bounds on Bayesmark's own warped scales."""
    spaces = ask_bayesmark(
        "import json; from bayesmark.space import JointSpace as S\n"
        "from bayesmark.sklearn_funcs import MODELS_CLF, MODELS_REG\n"
        "print(json.dumps([{m: {n: [c['type'], c.get('space'), S({n: c}).get_bounds().tolist()[0]]"
        " for n, c in v[2].items()} for m, v in models.items()}"
        " for models in (MODELS_CLF, MODELS_REG)]))"
    )
    kinds = {"real": Float, "int": Int, "bool": Categorical}
    for problem in BAYESMARK_PROBLEMS:
        task = problem.task
        theirs = spaces[task.data in ("boston", "diabetes")][task.model]
        assert theirs.keys() == task.space.keys()
        for name, (kind, scale, bounds) in theirs.items():
            parameter = task.space[name]
            assert isinstance(parameter, kinds[kind])
            if kind == "bool":
                assert parameter.choices == (False, True)
                continue
            assert parameter.log == (scale == "log")
            ends = [parameter.low, parameter.high]
            np.testing.assert_allclose(np.log(ends) if parameter.log else ends, bounds)


@needs_bayesmark
def test_values_are_bayesmarks():
    """A model without random numbers."""
    shared_worker.cache_clear()
    params = {"n_neighbors": 7, "p": 3}
    for metric in ("acc", "nll"):
        value = get_problem(f"bayesmark_kNN_wine_{metric}").function(params)
        expected = ask_bayesmark(
            "from bayesmark.sklearn_funcs import SklearnModel\n"
            f"print(SklearnModel('kNN', 'wine', '{metric}').evaluate({params})[0])"
        )
        assert value == expected

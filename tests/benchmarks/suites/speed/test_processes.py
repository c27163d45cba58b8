import sys
from argparse import Namespace

import numpy as np
import pytest

from mondrian_bo.benchmarks.suites.speed import startup
from mondrian_bo.benchmarks.suites.speed.onelearn_process import OnelearnProcess
from mondrian_bo.benchmarks.suites.speed.suite import run

FAKE = """
import numpy as np

class AMFRegressor:
    def __init__(self, n_estimators, random_state):
        assert n_estimators == 10
        self.sizes = []

    def partial_fit(self, X, y):
        assert X.shape == (len(y), 3)
        self.sizes.append(len(y))
        with open({log!r}, "a") as log:
            print(self.sizes, file=log)
"""


@pytest.fixture
def fake_onelearn(tmp_path, monkeypatch):
    log = tmp_path / "log"
    (tmp_path / "onelearn.py").write_text(FAKE.format(log=str(log)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return log


def test_onelearn_learns_in_steps(fake_onelearn):
    with OnelearnProcess(sys.executable) as onelearn:
        fake_onelearn.write_text("")
        data = onelearn.store(np.zeros((5, 3)), np.zeros(5))
        costs = [onelearn.learn(data, 5), onelearn.learn(data, 2)]
    assert fake_onelearn.read_text().splitlines() == ["[5]", "[2]", "[2, 2]", "[2, 2, 1]"]
    assert all(cost.wall > 0.0 for cost in costs)
    assert not data.exists()


def test_interpreter_without_onelearn(tmp_path):
    with pytest.raises(ValueError, match="cannot run onelearn; see `python -m"):
        run(Namespace(out=tmp_path, onelearn_python=sys.executable))


def test_interpreter_that_is_none(tmp_path):
    with pytest.raises(ValueError, match="does not run"):
        run(Namespace(out=tmp_path, onelearn_python=tmp_path / "nothing"))


def test_fresh_copy_is_what_runs(tmp_path):
    copy = startup.FreshCopy(tmp_path)
    assert not list(tmp_path.rglob("__pycache__"))
    (tmp_path / "mondrian_bo" / "only_here.py").write_text("")
    assert copy.sampler("import mondrian_bo.only_here").cost.wall > 0.0


def test_failing_process(tmp_path):
    with pytest.raises(RuntimeError, match="failed with 1"):
        startup.FreshCopy(tmp_path).run(["-c", "raise SystemExit(1)"])


def test_tpe_starts_and_reports(tmp_path):
    start = startup.FreshCopy(tmp_path).first_suggestion("TPE")
    assert list(start.marks) == ["python", "optuna", "sampler", "first trials", "suggestion"]
    assert start.cost.cpu == start.marks["suggestion"]


def test_compiled_code_is_kept_with_the_copy(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "elsewhere"))
    (tmp_path / "new").mkdir()
    copy = startup.FreshCopy(tmp_path / "new")
    code = "import os, json; print(json.dumps({os.environ['NUMBA_CACHE_DIR']: 1.0}))"
    assert list(copy.run(["-c", code]).marks) == [str(tmp_path / "new" / "numba-cache")]

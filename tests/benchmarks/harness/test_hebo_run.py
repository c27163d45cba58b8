"""HEBO as a sampler: a stub of its code, and its code where that is installed."""

import json
import os
import sys

import numpy as np
import pytest

from mondrian_bo.benchmarks.harness.hebo_run import PYTHON_VARIABLE, HeboRun, design_space
from mondrian_bo.benchmarks.harness.results import read_run, run_path
from mondrian_bo.benchmarks.harness.runner import Run, execute
from mondrian_bo.benchmarks.harness.samplers import get_sampler, installed_samplers
from mondrian_bo.benchmarks.problems import get_problem
from mondrian_bo.benchmarks.worker_process import shared_worker
from mondrian_bo.search_space import Categorical, Condition, Float, Int, SearchSpace

SPACE = SearchSpace(
    {
        "share": Float(0.0, 0.5),
        "rate": Float(1e-5, 1e-1, log=True),
        "depth": Int(1, 15),
        "steps": Int(10, 5000, log=True),
        "flag": Categorical((False, True)),
        "kind": Categorical(("a", "b", "c")),
    }
)

STUB = """
import json
import numpy as np
import pandas as pd

class HEBO:
    def __init__(self, space, scramble_seed):
        print("a notice that is no answer")
        self.space, self.seed, self.n = space, scramble_seed, 0
        self.log("start", scramble_seed, len(space))

    def log(self, *line):
        with open({log!r}, "a") as file:
            print(json.dumps(line), file=file)

    def suggest(self, n):
        self.log("suggest", n)
        numbers = np.arange(self.n, self.n + n)
        self.n += n
        first, second = self.space
        columns = [np.full(n, first["ub"] + 0.1), second["lb"] + 0.01 * numbers]
        return pd.DataFrame(dict(zip((first["name"], second["name"]), columns)), numbers % 3)

    def observe(self, row, value):
        assert row.shape == (1, len(self.space)) and value.shape == (1, 1)
        self.log("observe", row.iloc[0, 1], value[0, 0])
"""


@pytest.fixture
def stub(tmp_path, monkeypatch):
    log = tmp_path / "log"
    for package in ("hebo", "hebo/design_space", "hebo/optimizers"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    parse = "class DesignSpace:\n    def parse(self, parameters): return parameters\n"
    (tmp_path / "hebo/design_space/design_space.py").write_text(parse)
    (tmp_path / "hebo/optimizers/hebo.py").write_text(STUB.format(log=str(log)))
    (tmp_path / "torch.py").write_text("def manual_seed(seed): assert seed == 7, seed\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv(PYTHON_VARIABLE, sys.executable)
    shared_worker.cache_clear()
    yield lambda: [json.loads(line) for line in log.read_text().splitlines()]
    shared_worker.cache_clear()


def test_types_of_the_design_space():
    assert list(design_space(SPACE)) == [
        {"name": "share", "type": "num", "lb": 0.0, "ub": 0.5},
        {"name": "rate", "type": "pow", "lb": 1e-5, "ub": 1e-1},
        {"name": "depth", "type": "int", "lb": 1, "ub": 15},
        {"name": "steps", "type": "pow_int", "lb": 10, "ub": 5000},
        {"name": "flag", "type": "bool"},
        {"name": "kind", "type": "cat", "categories": ["a", "b", "c"]},
    ]


@pytest.mark.parametrize(
    "space",
    [
        {"a": Float(0.0, 1.0, step=0.1)},
        {"a": Int(0, 10, step=2)},
        {"a": Categorical(("x", "y")), "b": Int(0, 3, condition=Condition("a", ("x",)))},
    ],
)
def test_parameters_that_hebo_does_not_take(space):
    with pytest.raises(ValueError, match="HEBO"):
        list(design_space(SearchSpace(space)))


def test_numbers_one_and_zero_are_no_booleans():
    (parameter,) = design_space(SearchSpace({"a": Categorical((0, 1))}))
    assert parameter["type"] == "cat"


def test_batches(stub, tmp_path):
    """A batch is asked for at once, and its values are told before the next."""
    run = Run("branin", "hebo:batch=3", 7, 5, tmp_path / "out")
    execute(run)
    records = read_run(run_path(tmp_path / "out", "branin", "hebo:batch=3", 7))
    first, second = get_problem("branin").space.items()
    # The stub's values above the upper bound are clipped.
    assert all(record.params[first[0]] == first[1].high for record in records)
    seconds = [record.params[second[0]] for record in records]
    np.testing.assert_allclose(seconds, second[1].low + 0.01 * np.arange(5))
    lines = stub()
    assert [line[:2] for line in lines if line[0] != "observe"] == [
        ["start", 7],
        ["suggest", 3],
        ["suggest", 3],
    ]
    assert [line[0] for line in lines] == ["start", *["suggest", *["observe"] * 3] * 2][:8]
    told = [line[1:] for line in lines if line[0] == "observe"]
    values = [record.value for record in records]
    np.testing.assert_allclose(told, np.transpose([seconds, values]))


def test_only_batches_are_asked_for_at_once(stub):
    start = get_sampler("hebo").factory(seed=7)
    run = start(get_problem("branin").space)
    run.ask()
    run.ask()
    assert [line[1] for line in stub() if line[0] == "suggest"] == [1, 1]


def test_hebo_is_left_out_without_an_interpreter(monkeypatch):
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    notices = []
    assert installed_samplers(["random", "hebo:batch=8"], notices.append) == ["random"]
    assert "make_environment hebo" in notices[0]
    monkeypatch.setenv(PYTHON_VARIABLE, "python")
    assert installed_samplers(["hebo:batch=8"], notices.append) == ["hebo:batch=8"]


@pytest.mark.skipif(
    not os.environ.get(PYTHON_VARIABLE),
    reason=f"{PYTHON_VARIABLE} does not name an interpreter that has HEBO",
)
def test_hebo_itself():
    """Suggestions lie in the space, and the seed decides the first ones."""
    shared_worker.cache_clear()
    firsts = []
    for seed in (1, 1, 2):
        run = HeboRun(SPACE, os.environ[PYTHON_VARIABLE], seed, batch=4)
        for number in range(8 if seed == 2 else 4):
            params, _ = run.ask()
            firsts += [params] if number == 0 else []
            assert params.keys() == SPACE.keys()
            for name, parameter in SPACE.items():
                if isinstance(parameter, Categorical):
                    assert params[name] in parameter.choices
                else:
                    assert parameter.low <= params[name] <= parameter.high
                    assert isinstance(params[name], float if isinstance(parameter, Float) else int)
            run.tell(number, float(params["depth"]))
    assert firsts[0] == firsts[1] != firsts[2]

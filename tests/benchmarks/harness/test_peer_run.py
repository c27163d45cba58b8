"""HEBO and SMAC as samplers: stubs of their code, and their code where that is installed."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mondrian_bo.benchmarks.harness import peer_worker
from mondrian_bo.benchmarks.harness.peer_run import (
    PEERS,
    PeerRun,
    hebo_parameters,
    smac_parameters,
)
from mondrian_bo.benchmarks.harness.results import read_run, run_path
from mondrian_bo.benchmarks.harness.runner import Run, execute
from mondrian_bo.benchmarks.harness.samplers import get_sampler, installed_samplers
from mondrian_bo.benchmarks.harness.threads import one_thread_environment
from mondrian_bo.benchmarks.harness.worker_process import shared_worker
from mondrian_bo.benchmarks.problems import get_problem
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

HEBO_STUB = """
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


SMAC_STUB = """
import json
from types import SimpleNamespace

def log(*line):
    with open({log!r}, "a") as file:
        print(json.dumps(line), file=file)

class Scenario:
    def __init__(self, space, output_directory, **settings):
        self.space = space
        log("start", settings)

class HyperparameterOptimizationFacade:
    def __init__(self, scenario, logging_level):
        assert logging_level is False
        self.space, self.n = scenario.space, 0

    def ask(self):
        if self.n == 5:
            raise StopIteration
        self.n += 1
        return SimpleNamespace(config=dict(self.space.suggest(self.n)), number=self.n - 1)

    def tell(self, trial, value, save):
        log("tell", trial.number, value.cost, value.status, save)

class BlackBoxFacade:
    def __init__(self, scenario, logging_level):
        log("BlackBoxFacade")
"""

SMAC_HISTORY = """
from dataclasses import dataclass

class StatusType:
    SUCCESS, CRASHED = "success", "crashed"

@dataclass
class TrialValue:
    cost: float
    status: str = "success"
"""

CONFIGURATION_SPACE = """
import numpy as np

def Float(name, bounds, log): return name, float, bounds, log
def Integer(name, bounds, log): return name, int, bounds, log
def Categorical(name, choices): return name, str, choices, None
def InCondition(child, parent, values): return child[0], parent[0], values

class ConfigurationSpace(dict):
    def __init__(self, seed):
        assert seed == 7, seed

    def add(self, parameters):
        if isinstance(parameters, list):
            self.conditions = parameters
        else:
            self[parameters[0]] = parameters

    def suggest(self, n):
        for name, kind, bounds, log in self.values():
            if kind is float:
                yield name, np.float64(bounds[0] - 0.1 if n == 1 else bounds[1] - 0.01 * n)
            elif kind is int:
                yield name, np.int64(bounds[1])
            else:
                yield name, np.int64(bounds[-1])
"""


@pytest.fixture
def stub(tmp_path, monkeypatch):
    log = tmp_path / "log"
    for package in ("hebo", "hebo/design_space", "hebo/optimizers", "smac", "smac/main"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    parse = "class DesignSpace:\n    def parse(self, parameters): return parameters\n"
    (tmp_path / "hebo/design_space/design_space.py").write_text(parse)
    (tmp_path / "hebo/optimizers/hebo.py").write_text(HEBO_STUB.format(log=str(log)))
    (tmp_path / "torch.py").write_text("def manual_seed(seed): assert seed == 7, seed\n")
    (tmp_path / "smac/__init__.py").write_text(SMAC_STUB.format(log=str(log)))
    (tmp_path / "smac/runhistory.py").write_text(SMAC_HISTORY)
    exhausted = "class ConfigurationSpaceExhaustedException(Exception): pass\n"
    (tmp_path / "smac/main/exceptions.py").write_text(exhausted)
    (tmp_path / "ConfigSpace.py").write_text(CONFIGURATION_SPACE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for peer in PEERS.values():
        monkeypatch.setenv(peer.variable, sys.executable)
    shared_worker.cache_clear()
    yield lambda: [json.loads(line) for line in log.read_text().splitlines()]
    shared_worker.cache_clear()


def installed(name):
    """Skip visibly where no environment has the peer."""
    peer = PEERS[name]
    return pytest.mark.skipif(
        not peer.is_installed,
        reason=f"{peer.variable} does not name an interpreter that has {peer.title}",
    )


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
        list(hebo_parameters(SearchSpace(space)))


def test_numbers_one_and_zero_are_no_booleans():
    (parameter,) = hebo_parameters(SearchSpace({"a": Categorical((0, 1))}))
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
    run = start(get_problem("branin").space, 10)
    run.ask()
    run.ask()
    assert [line[1] for line in stub() if line[0] == "suggest"] == [1, 1]


def test_parameters_that_smac_takes():
    space = SearchSpace(
        {
            **SPACE,
            "odd": Categorical((None, 1, True)),
            "deep": Float(0.0, 1.0, condition=Condition("odd", (True, None))),
            "deeper": Int(1, 3, condition=Condition("depth", (2, 3))),
        }
    )
    numbers = {"log": False, "is_integer": False}
    assert list(smac_parameters(space)) == [
        {"name": "share", "low": 0.0, "high": 0.5, **numbers},
        {"name": "rate", "low": 1e-5, "high": 1e-1, "log": True, "is_integer": False},
        {"name": "depth", "low": 1, "high": 15, "log": False, "is_integer": True},
        {"name": "steps", "low": 10, "high": 5000, "log": True, "is_integer": True},
        {"name": "flag", "n_choices": 2},
        {"name": "kind", "n_choices": 3},
        {"name": "odd", "n_choices": 3},
        {"name": "deep", "low": 0.0, "high": 1.0, **numbers, "parent": "odd", "values": [2, 0]},
        {
            "name": "deeper",
            "low": 1,
            "high": 3,
            "log": False,
            "is_integer": True,
            "parent": "depth",
            "values": [2, 3],
        },
    ]
    with pytest.raises(ValueError, match="SMAC is not run on parameters with steps"):
        list(smac_parameters(SearchSpace({"a": Int(0, 10, step=2)})))


def test_a_run_of_smac(stub):
    """Values come back in the problem's terms, and values that are not finite as crashes."""
    space = SearchSpace({"x": Float(0.5, 2.0), "k": Int(1, 9), "c": Categorical(("a", None, True))})
    run = get_sampler("smac:batch=2").factory(seed=7)(space, 20)
    found = [run.ask()[0] for _ in range(2)]
    for number, value in enumerate((math.inf, 3.0)):
        run.tell(number, value)
    found += [run.ask()[0] for _ in range(2)]
    for number, value in ((2, 1.0), (3, math.nan)):
        run.tell(number, value)
    # The stub's first value is below the lower bound.
    assert [params["x"] for params in found] == pytest.approx([0.5, 1.98, 1.97, 1.96])
    assert all((params["k"], params["c"]) == (9, True) for params in found)
    start, *told = stub()
    assert start == ["start", {"deterministic": True, "seed": 7, "n_trials": 20}]
    assert told == [
        ["tell", 0, 1e10, "crashed", False],
        ["tell", 1, 3.0, "success", False],
        ["tell", 2, 1.0, "success", False],
        ["tell", 3, 3.0, "crashed", False],
    ]
    run.ask()
    with pytest.raises(ValueError, match="SMAC has no further suggestion"):
        run.ask()


def test_the_facade_of_smac(stub):
    space = SearchSpace({"x": Float(0.5, 2.0)})
    get_sampler("smac:facade=BlackBoxFacade").factory(seed=7)(space, 20)
    assert [line[0] for line in stub()] == ["start", "BlackBoxFacade"]
    for name in ("smac:facade=RandomFacade", "smac:n_trees=5", "hebo:facade=BlackBoxFacade"):
        with pytest.raises(ValueError, match=r"has no .*=.*; known: "):
            installed_samplers([name], print)


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_is_left_out_without_an_interpreter(name, monkeypatch):
    variable = PEERS[name].variable
    monkeypatch.delenv(variable, raising=False)
    notices = []
    assert installed_samplers(["random", f"{name}:batch=8"], notices.append) == ["random"]
    assert f"make_environment {name}" in notices[0]
    with pytest.raises(ValueError, match=f"{variable} does not name .*make_environment {name}"):
        get_sampler(name).factory(seed=0)(SPACE, 10)
    monkeypatch.setenv(variable, "python")
    assert installed_samplers([f"{name}:batch=8"], notices.append) == [f"{name}:batch=8"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=installed(name), id=name) for name in PEERS]
)
def test_the_peer_itself(name):
    """Suggestions lie in the space, and the seed decides the first ones."""
    shared_worker.cache_clear()
    firsts = []
    for seed in (1, 1, 2):
        run = PeerRun(PEERS[name], SPACE, seed, n_trials=20, batch=4)
        for number in range(8 if seed == 2 else 4):
            params, _ = run.ask()
            firsts += [params] if number == 0 else []
            assert params.keys() == SPACE.keys()
            for key, parameter in SPACE.items():
                if isinstance(parameter, Categorical):
                    assert params[key] in parameter.choices
                else:
                    assert parameter.low <= params[key] <= parameter.high
                    assert isinstance(params[key], float if isinstance(parameter, Float) else int)
            run.tell(number, float(params["depth"]))
    assert firsts[0] == firsts[1] != firsts[2]


@installed("smac")
def test_smac_keeps_conditions():
    shared_worker.cache_clear()
    space = get_problem("deep_tree").space
    run = PeerRun(PEERS["smac"], space, 0, n_trials=12)
    for number in range(12):
        params, _ = run.ask()
        # Only complete rows of active parameters have a place in the unit cube.
        assert space.is_complete(space.to_unit(params)[None])[0]
        assert space.from_unit(space.to_unit(params)).keys() == params.keys()
        run.tell(number, math.nan if number == 1 else float(number))


OWN_LOOP = """
import json, logging, sys, tempfile
sys.path.insert(0, sys.argv[1])
import peer_worker, smac
logging.disable(logging.WARNING)
space = peer_worker._configuration_space(json.loads(sys.argv[2]), 3)
found = []
def target(config, seed):
    found.append([float(value) for value in dict(config).values()])
    return sum(value**2 for value in found[-1])
with tempfile.TemporaryDirectory() as folder:
    scenario = smac.Scenario(
        space, deterministic=True, seed=3, n_trials=16, output_directory=folder
    )
    smac.HyperparameterOptimizationFacade(scenario, target, logging_level=False).optimize()
print(json.dumps(found))
"""


@installed("smac")
def test_trials_are_those_of_smacs_own_loop():
    """The trials after the first quarter come from the model."""
    shared_worker.cache_clear()
    space = SearchSpace({"x": Float(-5.0, 5.0), "y": Float(-1.0, 5.0)})
    run = PeerRun(PEERS["smac"], space, 3, n_trials=16)
    found = []
    for number in range(16):
        params, _ = run.ask()
        found.append(list(params.values()))
        run.tell(number, sum(value**2 for value in found[-1]))
    python, folder = os.environ[PEERS["smac"].variable], Path(peer_worker.__file__).parent
    own = subprocess.run(
        [python, "-W", "ignore", "-c", OWN_LOOP, folder, json.dumps(list(smac_parameters(space)))],
        env=one_thread_environment(PYTHONHASHSEED="0"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(own.stdout) == found

"""The suite ``curves``: recorded trainings, their replay, and the tables."""

from __future__ import annotations

from argparse import Namespace
from itertools import islice, product

import numpy as np
import optuna
import pytest
from optuna.pruners import BasePruner, NopPruner

from mondrian_bo.benchmarks.harness.methods import Method
from mondrian_bo.benchmarks.harness.peer_run import PEERS
from mondrian_bo.benchmarks.harness.worker_process import shared_worker
from mondrian_bo.benchmarks.suites.curves import smac_replay, suite
from mondrian_bo.benchmarks.suites.curves.record import record
from mondrian_bo.benchmarks.suites.curves.recorded import Recorded, load
from mondrian_bo.benchmarks.suites.curves.replay import BUDGET, METHODS, Replay, replay
from mondrian_bo.benchmarks.suites.curves.smac_replay import SMAC_METHODS, replay_smac
from mondrian_bo.benchmarks.suites.curves.tasks import TASKS, Task


class _PruneAt(BasePruner):
    """Prunes every second trial at a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def prune(self, study, trial) -> bool:
        return trial.number % 2 == 1 and trial.last_step >= self.step


def _random(seed: int) -> optuna.samplers.BaseSampler:
    return optuna.samplers.RandomSampler(seed=seed)


@pytest.fixture
def small(monkeypatch) -> Recorded:
    """Four trainings of five steps: three end at 4, 3 and 2, and one diverges."""
    task = Task(
        "", {"a": (0.0, 1.0, 2.0, 3.0)}, 5, "last", "development", lambda settings: iter(())
    )
    monkeypatch.setitem(TASKS, "small", task)
    curves = np.array([[9.0, 8, 7, 6, 4], [9, 8, 7, 6, 3], [9, 8, 7, 6, 2], [9, np.nan, 9, 9, 9]])
    outcomes = np.array([4.0, 3.0, 2.0, np.nan])
    return Recorded("small", (4,), curves, np.array([1.0, 1.0, 1.0, 5.0]), outcomes)


@pytest.mark.parametrize("name", TASKS)
def test_recordings_fit_their_tasks(name) -> None:
    task, recorded = TASKS[name], load(name)
    assert recorded.curves.shape == (np.prod(recorded.shape), task.n_steps)
    assert 250 <= len(recorded.curves) <= 400
    assert (recorded.seconds > 0.0).all()
    assert np.isfinite(recorded.outcomes).mean() > 0.8
    # A tolerance of 1 % leaves a few settings to find, not most.
    assert (recorded.outcomes <= recorded.target).sum() <= 10
    assert 3 <= (recorded.outcomes <= recorded.rank_target).sum() <= 10


@pytest.mark.parametrize("name", ["mlp_diabetes", "svm_folds", "boosting_diabetes"])
def test_a_training_is_repeated(name) -> None:
    """The first setting of the grid gives the recorded curve again, apart from its precision."""
    task = TASKS[name]
    settings = dict(zip(task.levels, next(product(*task.levels.values())), strict=True))
    reports = list(islice(task.train(settings), 5))
    assert reports == pytest.approx(load(name).curves[0, :5], rel=2e-3, abs=1e-3)


def test_a_recording_has_all_settings() -> None:
    task = Task(
        "", {"a": (1.0, 2.0), "b": (3.0, 4.0)}, 2, "last", "held-out",
        lambda settings: iter([settings["a"], settings["b"], np.nan]),
    )  # fmt: skip
    recording = record(task)
    assert recording.curves.tolist() == [[1, 3], [1, 4], [2, 3], [2, 4]]
    assert recording.curves.dtype == np.float16


def test_time_runs_until_the_best_is_found(small, monkeypatch) -> None:
    """The order of the trials and their times are compared with a loop."""
    seen = []
    original = optuna.Trial.suggest_int
    monkeypatch.setattr(
        optuna.Trial,
        "suggest_int",
        lambda self, *args: seen.append(original(self, *args)) or seen[-1],
    )
    for step, seed in product([1, 3, 9], range(4)):
        seen.clear()
        method = Method(_random, lambda _, step=step: _PruneAt(step), "")
        replayed = replay(small, method, seed, budget=6.0)
        clock, best, times, n_pruned, n_lost = 0.0, np.inf, [], 0, 0
        for number, setting in enumerate(seen):
            n_steps = 5 if number % 2 == 0 else min(step + 1, 5)
            n_steps = 2 if setting == 3 else n_steps
            # The mean of a complete training is 2.
            clock += (5.0 if setting == 3 else 1.0) / 2.0 * n_steps / 5.0
            if n_steps < 5 or (number % 2 and step + 1 <= 5):
                n_pruned += 1
                n_lost += bool(small.outcomes[setting] < best)
            elif small.outcomes[setting] < best:
                best = small.outcomes[setting]
                times.append(clock)
        assert replayed.times == pytest.approx(times, abs=1e-4)
        assert (replayed.n_pruned, replayed.n_lost) == (n_pruned, n_lost)
        assert replayed.n_complete == len(seen) - n_pruned


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_methods_run(method) -> None:
    replayed = replay(load("svm_folds"), METHODS[method], 0, budget=2.5)
    assert replayed.n_complete >= 1
    assert replayed.times == sorted(replayed.times)
    assert replayed.outcomes == sorted(replayed.outcomes, reverse=True)
    again = replay(load("svm_folds"), METHODS[method], 0, budget=2.5)
    assert again == replayed


class _ScriptedSmac:
    """Stands for the worker: it asks for settings and numbers of steps as a script says."""

    def __init__(self, script: list[tuple[int, int]]) -> None:
        self.script, self.started, self.told = iter(script), {}, []

    def worker(self) -> _ScriptedSmac:
        return self

    def ask(self, task, **arguments):
        if task == "start":
            self.started = arguments
        if task == "observe":
            self.told.append((arguments["number"], arguments["value"]))
        if task == "suggest":
            return [[{"a": setting}, steps] for setting, steps in islice(self.script, 1)]
        return None


@pytest.mark.parametrize("method", SMAC_METHODS)
def test_smac_pays_for_steps(small, monkeypatch, method) -> None:
    """The means of complete trainings are 0.5, 0.5, 0.5 and 2.5 by setting."""
    script = [(0, 2), (1, 2), (3, 2), (2, 2), (1, 4), (0, 5), (1, 5), (3, 5)]
    smac = _ScriptedSmac(script)
    monkeypatch.setattr(smac_replay, "PEERS", {"smac": smac})
    replayed = replay_smac(small, SMAC_METHODS[method], seed=4, budget=9.0)
    assert smac.started == {
        "library": "smac_hyperband",
        "parameters": [{"name": "a", "low": 0, "high": 3, "log": False, "is_integer": True}],
        "seed": 4,
        "n_steps": 5,
        "n_complete": 9.0,
    }
    assert smac.told[:2] + smac.told[3:7] == [(0, 8), (1, 8), (3, 8), (4, 6), (5, 4), (6, 3)]
    assert [number for number, value in smac.told if np.isnan(value)] == [2, 7]
    # Two steps of setting 3 take 1.
    start = 3 * 0.2 + 1.0
    if SMAC_METHODS[method].resumes:
        expected = [start + 0.2 + 0.3, start + 0.2 + 0.3 + 0.1]
    else:
        expected = [start + 0.4 + 0.5, start + 0.4 + 0.5 + 0.5]
    assert replayed.times == pytest.approx(expected)
    assert replayed.outcomes == [4.0, 3.0]
    # Setting 2 is better than the complete ones, and setting 3 diverges.
    assert (replayed.n_complete, replayed.n_pruned, replayed.n_lost) == (2, 2, 1)


def test_smac_ends_where_it_arrives_or_time_is_over(small, monkeypatch) -> None:
    for script, budget, n_told in ([(2, 5), (0, 5)], 9.0, 1), ([(0, 4), (3, 1), (2, 5)], 0.5, 2):
        smac = _ScriptedSmac(script)
        monkeypatch.setattr(smac_replay, "PEERS", {"smac": smac})
        assert replay_smac(small, SMAC_METHODS["smac_hyperband"], 0, budget).outcomes == (
            [2.0] if n_told == 1 else []
        )
        assert len(smac.told) == n_told


@pytest.mark.skipif(
    not PEERS["smac"].is_installed,
    reason=f"{PEERS['smac'].variable} does not name an interpreter that has SMAC",
)
def test_smac_itself_replays() -> None:
    """The budgets of a training are those of Hyperband, and the same seed gives the same run."""
    shared_worker.cache_clear()
    task, method = load("mlp_diabetes"), SMAC_METHODS["smac_hyperband"]
    first = replay_smac(task, method, 0, budget=6.0)
    assert first.n_complete >= 1
    assert first.n_pruned > first.n_complete
    assert first.outcomes == sorted(first.outcomes, reverse=True)
    assert replay_smac(task, method, 0, budget=6.0) == first


def test_smac_is_left_out_without_an_interpreter(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.delenv(PEERS["smac"].variable, raising=False)
    monkeypatch.setattr(suite, "TASKS", {"svm_folds": TASKS["svm_folds"]})
    monkeypatch.setattr(suite, "replay", lambda *_: Replay([2.0], [9.0], 9, 5, 1))
    suite.run(_arguments(tmp_path, samplers="tpe,smac_hyperband"))
    captured = capsys.readouterr()
    assert "make_environment smac" in captured.err
    assert "TPE, no pruning" in captured.out and "SMAC" not in captured.out
    with pytest.raises(ValueError, match="none of the methods asked for is installed"):
        suite.run(_arguments(tmp_path, samplers="smac_hyperband"))
    # Runs that are known need no interpreter.
    keys = [suite.Key("svm_folds", "smac_hyperband", seed) for seed in range(2)]
    suite._write(tmp_path / "known.gz", dict.fromkeys(keys, Replay([2.0], [9.0], 9, 5, 1)))
    known = [tmp_path / "known.gz"]
    suite.run(_arguments(tmp_path / "b", samplers="tpe,smac_hyperband", known=known))
    assert "SMAC, Hyperband" in capsys.readouterr().out


def _arguments(out, **changes) -> Namespace:
    arguments = {"out": out, "seeds": 2, "jobs": 1, "known": [], "half": None, "samplers": "tpe"}
    return Namespace(**{**arguments, **changes})


def test_the_suite_writes_tables_and_resumes(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(suite, "TASKS", {"svm_folds": TASKS["svm_folds"]})
    fake = {"tpe": 40.0, "mondrian_pruner": 20.0}
    counted = []

    def replayed(task, method, seed):
        name = next(name for name in fake if METHODS[name] is method)
        counted.append(name)
        return Replay([1.0, fake[name] + seed], [1.0, task.target], 9, 5, 1)

    monkeypatch.setattr(suite, "replay", replayed)
    arguments = _arguments(tmp_path, samplers="tpe,mondrian_pruner")
    suite.run(arguments)
    text = (tmp_path / "curves.md").read_text()
    assert "| TPE, no pruning | 40.5 ± 0.5 |" in text
    assert "| `MondrianSampler`, `MondrianPruner` | 20.5 ± 0.5 |" in text
    assert "| TPE, no pruning | 40.5 | 1.98 | 1.95 to 2.00 | 9 | 5 | 1.0 |" in text
    assert (tmp_path / "curves.png").stat().st_size > 3000
    assert "40.5 ± 0.5" in capsys.readouterr().out
    assert len(counted) == 4
    suite.run(arguments)
    # Another directory starts from an archive.
    suite.run(_arguments(tmp_path / "b", seeds=3, known=[tmp_path / "curves.jsonl.gz"]))
    assert len(counted) == 5
    assert len(suite.read(tmp_path / "b" / "curves.jsonl.gz")) == 5


def test_wrong_arguments(tmp_path) -> None:
    with pytest.raises(ValueError, match="unknown method 'cmaes'; known: tpe, "):
        suite.run(_arguments(tmp_path, samplers="cmaes"))
    with pytest.raises(ValueError, match="needs names between commas, got ','"):
        suite.run(_arguments(tmp_path, samplers=","))
    with pytest.raises(ValueError, match="at least one seed"):
        suite.run(_arguments(tmp_path, seeds=0))


def test_names_of_methods_are_split_like_those_of_samplers(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(suite, "TASKS", {"svm_folds": TASKS["svm_folds"]})
    monkeypatch.setattr(suite, "replay", lambda *_: Replay([2.0], [9.0], 9, 5, 1))
    suite.run(_arguments(tmp_path, samplers="tpe, mondrian_pruner,tpe,"))
    # Once in each of two tables of two targets.
    assert capsys.readouterr().out.count("TPE, no pruning") == 4
    assert len(suite.read(tmp_path / "curves.jsonl.gz")) == 4


def test_all_methods_run_by_default(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(suite, "TASKS", {"svm_folds": TASKS["svm_folds"]})
    monkeypatch.setattr(suite, "replay", lambda *_: Replay([2.0], [9.0], 9, 5, 1))
    monkeypatch.delenv(PEERS["smac"].variable, raising=False)
    suite.run(_arguments(tmp_path, samplers=None))
    assert "skipping smac_hyperband, smac_hyperband_anew" in capsys.readouterr().err
    assert {key.method for key in suite.read(tmp_path / "curves.jsonl.gz")} == set(METHODS)


def test_a_run_that_does_not_arrive_takes_the_budget() -> None:
    replayed = Replay([3.0, 7.0], [1.5, 1.2], 4, 0, 0)
    assert suite.time_to(replayed, 1.3) == 7.0
    assert suite.time_to(replayed, 1.6) == 3.0
    assert suite.time_to(replayed, 1.0) == BUDGET


def test_all_methods_have_a_description_and_a_default_sampler() -> None:
    assert len({method.description for method in METHODS.values()}) == len(METHODS)
    assert isinstance(METHODS["tpe"].new_study("some", 0, 5).pruner, NopPruner)

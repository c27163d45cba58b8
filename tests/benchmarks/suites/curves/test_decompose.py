"""Where the time of replayed runs goes: oracles, and sums over trials."""

from __future__ import annotations

import numpy as np
import optuna
import pytest

from mondrian_bo.benchmarks.harness.methods import Method
from mondrian_bo.benchmarks.suites.curves import decompose as decomposing
from mondrian_bo.benchmarks.suites.curves.decompose import (
    KnownCurvesPruner,
    OraclePruner,
    decompose,
)
from mondrian_bo.benchmarks.suites.curves.recorded import load
from mondrian_bo.benchmarks.suites.curves.replay import METHODS, replay, replayed_trials


def _random(seed: int) -> optuna.samplers.BaseSampler:
    return optuna.samplers.RandomSampler(seed=seed)


def test_the_oracle_lets_only_improvements_finish() -> None:
    task = load("svm_folds")
    method = Method(_random, lambda _: OraclePruner(task), "")
    best, n_pruned = np.inf, 0
    for trial in replayed_trials(task, method, 0):
        outcome = task.outcomes[trial.setting]
        assert trial.is_pruned == (not outcome < best)
        assert trial.n_steps == (2 if trial.is_pruned else 20)
        n_pruned += trial.is_pruned
        best = min(best, outcome)
    assert n_pruned > 5
    assert best <= task.target


def test_known_curves_stop_few_of_the_best() -> None:
    task = load("svm_folds")
    pruner = KnownCurvesPruner(task, 0.1)
    method = Method(_random, lambda _: pruner, "")
    trials = list(replayed_trials(task, method, 0, budget=8.0))
    pruned = [trial for trial in trials if trial.is_pruned]
    assert len(pruned) > 0.5 * len(trials)
    assert all(trial.n_steps >= 2 for trial in pruned)
    # No setting that reaches the target is among them.
    assert all(task.outcomes[trial.setting] > task.target for trial in pruned)


@pytest.mark.parametrize("budget", [6.0, 40.0])
def test_times_add_up(budget) -> None:
    task, method = load("svm_folds"), METHODS["tpe_median"]
    spent = decompose(task, method, 0, budget)
    replayed = replay(task, method, 0, budget)
    trials = list(replayed_trials(task, method, 0, budget))
    assert spent.complete + spent.pruned == pytest.approx(trials[-1].end)
    assert (spent.n_settings, spent.n_complete) == (len(trials), replayed.n_complete)
    has_arrived = replayed.outcomes[-1] <= task.target
    assert spent.time == pytest.approx(replayed.times[-1] if has_arrived else budget, abs=1e-4)
    lost = [t for t in trials if t.is_pruned and task.outcomes[t.setting] <= task.target]
    assert spent.has_pruned_target == bool(lost)


@pytest.mark.parametrize("markdown", [False, True])
def test_the_command_prints_tables(capsys, markdown) -> None:
    arguments = ["--seeds", "1", "--tasks", "svm_folds", *(["--markdown"] if markdown else [])]
    decomposing.main(arguments)
    text = capsys.readouterr().out
    assert "random settings, oracle" in text
    assert text.count("svm_folds") == 1 + len(decomposing.methods_of(load("svm_folds")))

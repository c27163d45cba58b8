"""Workers that are killed in a trial, and workers that start at one moment."""

from __future__ import annotations

import shutil
import signal
import sys
import time

import optuna
import pytest
from optuna.storages import RetryHeartbeatStaleTrialCallback
from optuna.trial import TrialState
from studies import states
from worker_processes import (
    PATIENCE,
    bowl,
    check,
    die_in_a_trial,
    finite,
    join,
    processes,
    work,
)

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="processes are copied on POSIX systems"),
    # Optuna calls its arguments for heartbeats experimental, and wants `optimize` to be used.
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
    pytest.mark.filterwarnings("ignore:Heartbeat of storage:UserWarning"),
]

N_DONE = 5
"""Trials before the one in which the worker is killed; the model is in use."""


HEARTBEAT = {"heartbeat_interval": 1, "grace_period": 1}


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Return a folder of studies whose only worker is dead: with a heartbeat, and without."""
    folder = tmp_path_factory.mktemp("killed")
    for name, settings in (("study.db", {}), ("journal.log", {}), ("beat.db", HEARTBEAT)):
        arguments = (folder / name, N_DONE, settings)
        victim = processes().Process(target=die_in_a_trial, args=arguments)
        victim.start()
        victim.join(PATIENCE)
        assert victim.exitcode == -signal.SIGKILL
    return folder


@pytest.mark.parametrize("name", ["study.db", "journal.log"])
def test_without_a_heartbeat_the_trial_counts_as_running(killed, name):
    study = join(killed / name)
    study.optimize(bowl, n_trials=4)
    assert states(study) == {TrialState.COMPLETE: N_DONE + 4, TrialState.RUNNING: 1}
    check(study, N_DONE + 4)
    killed = study.trials[N_DONE]
    # Its point is not proposed to others, and the user can end it by hand.
    assert [trial.params for trial in study.trials].count(killed.params) == 1
    study.tell(N_DONE, state=TrialState.FAIL)
    study.optimize(bowl, n_trials=2)
    check(study, N_DONE + 6)


@pytest.mark.parametrize("retries", [False, True])
def test_with_a_heartbeat(killed, tmp_path, retries):
    callback = RetryHeartbeatStaleTrialCallback() if retries else None
    # With the journal of the database, if its writer died while it wrote.
    for path in killed.glob("beat.db*"):
        shutil.copy(path, tmp_path)
    study = join(tmp_path / "beat.db", **HEARTBEAT, heartbeat_stale_trial_callback=callback)
    # The trial is stale two seconds after its worker's last sign of life.
    time.sleep(max(0.0, (killed / "beat.db").stat().st_mtime + 2.5 - time.time()))
    study.optimize(bowl, n_trials=4)
    assert states(study) == {TrialState.COMPLETE: N_DONE + 4, TrialState.FAIL: 1}
    killed, *later = study.trials[N_DONE:]
    assert killed.state == TrialState.FAIL
    retried = [trial for trial in later if trial.params == killed.params]
    assert len(retried) == retries
    check(study, N_DONE + 4)


@pytest.mark.parametrize(
    ("name", "objective", "seed", "n_trials"),
    [("study.db", bowl, 0, 1), ("journal.log", finite, None, 2)],
)
def test_eight_start_at_one_moment(tmp_path, name, objective, seed, n_trials):
    path, context = tmp_path / name, processes()
    study = join(path)
    barrier = context.Barrier(8)
    arguments = (path, objective, seed, barrier, n_trials)
    workers = [context.Process(target=work, args=arguments) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE)
    assert [worker.exitcode for worker in workers] == [0] * 8
    assert states(study) == {TrialState.COMPLETE: 8 * n_trials}
    study.optimize(objective, n_trials=4)
    check(study, 8 * n_trials + 4)


def test_a_journal_with_half_a_line(tmp_path):
    """A machine that stops can leave one. The user removes it; no finished trial is lost."""
    path = tmp_path / "journal.log"
    join(path).optimize(bowl, n_trials=N_DONE)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if line.endswith(b"\n")))
    study = join(path)
    assert states(study) == {TrialState.COMPLETE: N_DONE - 1, TrialState.RUNNING: 1}
    study.tell(N_DONE - 1, state=TrialState.FAIL)
    study.optimize(bowl, n_trials=3)
    check(study, N_DONE + 2)
    assert optuna.load_study(study_name="s", storage=study._storage).best_value == study.best_value

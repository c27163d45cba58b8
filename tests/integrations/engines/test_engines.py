"""Workers on the engines that studies run on: no trial is lost, none is proposed twice."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

import optuna
import pytest
from joblib_backends import check_same_forest
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.trial import TrialState

WORKER = Path(__file__).with_name("worker.py")
sys.path.insert(0, str(WORKER.parent))
worker = import_module("worker")
sys.path.pop(0)

POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
"""Folders of PostgreSQL's programs, as Debian installs them."""


N_FIRST = 8
"""Trials of a study before its workers start: the model is in use."""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(*arguments):
    command = [sys.executable, str(WORKER), *map(str, arguments)]
    # Several workers share few cores.
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def run_workers(kind, address, n_workers, n_trials):
    """Run workers, and check the study that they leave."""
    storage = worker.open_storage(kind, address)
    study = optuna.create_study(study_name="s", storage=storage, sampler=worker.new_sampler(kind))
    # Otherwise each worker compiles the same code at the same time.
    study.optimize(worker.objective, n_trials=N_FIRST)
    workers = [start(kind, address, n_trials) for _ in range(n_workers)]
    for one in workers:
        _, errors = one.communicate(timeout=300)
        assert one.returncode == 0, errors
    check(study, N_FIRST + n_workers * n_trials)


def check(study, n_trials):
    trials = study.get_trials()
    assert [trial.number for trial in trials] == list(range(n_trials))
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}
    assert len({tuple(trial.params.values()) for trial in trials}) == n_trials
    # The study goes on.
    study.optimize(worker.objective, n_trials=2)
    assert len(study.trials) == n_trials + 2


def test_journal(tmp_path):
    run_workers("journal", str(tmp_path / "journal.log"), 4, 15)


def test_grpc(tmp_path):
    pytest.importorskip("grpc", reason="needs grpcio: pip install 'mondrian-bo[engines]'")
    port = free_port()
    server = start("serve", f"sqlite:///{tmp_path}/study.db", port)
    try:
        worker.open_storage("grpc", str(port)).wait_server_ready(timeout=60)
        run_workers("grpc", str(port), 2, 15)
    finally:
        server.kill()
        server.communicate()


class Postgres:
    """A server with empty data on a free loopback port.

    Attributes
    ----------
    address : str
        Its URL for Optuna.
    """

    def __init__(self):
        self._programs = POSTGRES[-1]
        # PostgreSQL refuses to run as root, and other users cannot read pytest's folders.
        unprivileged = {"user": "nobody"} if os.getuid() == 0 else {}
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        if unprivileged:
            shutil.chown(self._folder, "nobody")
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._settings = {"cwd": "/", **silent, **unprivileged}
        self._port, self._server = free_port(), None
        self.address = f"postgresql+psycopg2://study@127.0.0.1:{self._port}/postgres"

    def __enter__(self):
        initdb = ["initdb", "-D", self._folder / "data", "-U", "study", "-A", "trust", "--no-sync"]
        subprocess.run([self._programs / initdb[0], *initdb[1:]], check=True, **self._settings)
        self.start()
        return self

    def __exit__(self, *error):
        if self._server is not None:
            self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self):
        """Start the server and wait until it answers."""
        command = [self._programs / "postgres", "-D", self._folder / "data", "-h", "127.0.0.1"]
        command += ["-p", str(self._port), "-k", self._folder, "-F"]
        self._server = subprocess.Popen(command, **self._settings)
        ready = [self._programs / "pg_isready", "-h", "127.0.0.1", "-p", str(self._port)]
        for _ in range(300):
            if subprocess.run([*ready, "-U", "study"], **self._settings).returncode == 0:
                break
            assert self._server.poll() is None
            time.sleep(0.1)

    def stop(self):
        """Stop the server, which ends all connections."""
        self._server.send_signal(signal.SIGINT)
        try:
            self._server.wait(10)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        self._server = None


@pytest.mark.skipif(not POSTGRES, reason="PostgreSQL is not in /usr/lib/postgresql")
def test_postgresql():
    pytest.importorskip("psycopg2", reason="needs psycopg2: pip install 'mondrian-bo[engines]'")
    with Postgres() as server:
        run_workers("postgresql", server.address, 8, 49)


@pytest.mark.skipif(not POSTGRES, reason="PostgreSQL is not in /usr/lib/postgresql")
def test_postgresql_is_restarted():
    """The study goes on after the restart, and no trial is lost or learnt twice."""
    pytest.importorskip("psycopg2", reason="needs psycopg2: pip install 'mondrian-bo[engines]'")
    with Postgres() as server:
        storage = RDBStorage(server.address, engine_kwargs={"pool_pre_ping": True})
        study = optuna.create_study(storage=storage, sampler=worker.new_sampler())
        study.optimize(worker.objective, n_trials=8)
        # Between two trials: the connection is tested before its use, and opened again.
        server.stop()
        server.start()
        study.optimize(worker.objective, n_trials=2)
        # In a trial, and it ends while the server is away.
        trial = study.ask()
        value = worker.objective(trial)
        server.stop()
        with pytest.raises(StorageInternalError):
            study.tell(trial, value)
        with pytest.raises(StorageInternalError):
            study.ask()
        server.start()
        study.tell(trial, value)
        study.optimize(worker.objective, n_trials=3)
        check(study, 14)
        (memory,) = study.sampler._memory[study._storage].values()
        # The last trial has not been read.
        assert memory._optimizer.n_trials == memory.n_told == 15


def test_dask():
    distributed = pytest.importorskip(
        "distributed", reason="needs dask: pip install 'mondrian-bo[engines]'"
    )
    integration = pytest.importorskip("optuna_integration")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        study = optuna.create_study(
            storage=integration.DaskStorage(client=client), sampler=worker.new_sampler()
        )
        tasks = [
            client.submit(study.optimize, worker.objective, n_trials=10, pure=False)
            for _ in range(4)
        ]
        distributed.wait(tasks, timeout=120)
        assert [task.status for task in tasks] == ["finished"] * 4
        check(study, 40)


@pytest.mark.parametrize("backend", ["threading", "loky", "dask"])
def test_backends_of_joblib_give_the_same_forest(backend):
    with contextlib.ExitStack() as stack:
        if backend == "dask":
            distributed = pytest.importorskip(
                "distributed", reason="needs dask: pip install 'mondrian-bo[engines]'"
            )
            cluster = distributed.LocalCluster(
                n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
            )
            stack.enter_context(distributed.Client(stack.enter_context(cluster)))
        check_same_forest(backend)

"""Workers on the engines that studies run on: no trial is lost, none is proposed twice."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

import joblib
import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from mondrian_bo.surrogates import MondrianForestRegressor

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


@contextlib.contextmanager
def postgres():
    """Start a server with empty data on a free loopback port; yield its address."""
    programs = POSTGRES[-1]
    # PostgreSQL refuses to run as root, and other users cannot read pytest's folders.
    unprivileged = {"user": "nobody"} if os.getuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    if unprivileged:
        shutil.chown(folder, "nobody")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/", **unprivileged}
    data, port = folder / "data", free_port()
    server = None
    try:
        initdb = [programs / "initdb", "-D", data, "-U", "study", "-A", "trust", "--no-sync"]
        subprocess.run(initdb, check=True, **quiet)
        command = [programs / "postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1"]
        server = subprocess.Popen([*command, "-k", folder, "-F"], **quiet)
        for _ in range(300):
            ready = [programs / "pg_isready", "-h", "127.0.0.1", "-p", str(port), "-U", "study"]
            if subprocess.run(ready, **quiet).returncode == 0:
                break
            assert server.poll() is None
            time.sleep(0.1)
        yield f"postgresql+psycopg2://study@127.0.0.1:{port}/postgres"
    finally:
        if server is not None:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.skipif(not POSTGRES, reason="PostgreSQL is not in /usr/lib/postgresql")
def test_postgresql():
    pytest.importorskip("psycopg2", reason="needs psycopg2: pip install 'mondrian-bo[engines]'")
    with postgres() as address:
        run_workers("postgresql", address, 8, 49)


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
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    y = X.sum(axis=1)
    expected = MondrianForestRegressor(4, random_state=0).fit(X, y).predict(X)
    with contextlib.ExitStack() as stack:
        if backend == "dask":
            distributed = pytest.importorskip(
                "distributed", reason="needs dask: pip install 'mondrian-bo[engines]'"
            )
            cluster = distributed.LocalCluster(
                n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
            )
            stack.enter_context(distributed.Client(stack.enter_context(cluster)))
        stack.enter_context(joblib.parallel_config(backend, n_jobs=2))
        forest = MondrianForestRegressor(4, random_state=0).fit(X, y)
        np.testing.assert_array_equal(forest.predict(X), expected)

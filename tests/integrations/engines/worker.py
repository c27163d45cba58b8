"""A worker process of the tests, or the server of a gRPC proxy.

python worker.py KIND ADDRESS N_TRIALS
python worker.py serve ADDRESS PORT
"""

from __future__ import annotations

import sys

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage, run_grpc_proxy_server
from optuna.storages.journal import JournalFileBackend

from mondrian_bo import MondrianSampler


def open_storage(kind: str, address: str) -> BaseStorage:
    if kind == "journal":
        return JournalStorage(JournalFileBackend(address))
    if kind == "grpc":
        return optuna.storages.GrpcStorageProxy(host="localhost", port=int(address))
    return RDBStorage(address)


def new_sampler(kind: str = "") -> MondrianSampler:
    if kind == "postgresql":
        # Cheap enough for 8 processes on few cores, each of which learns all trials.
        return MondrianSampler(
            seed=0, surrogate="forest", n_startup_trials=4, n_estimators=3, n_candidates=30
        )
    # One seed for all workers: draws differ by the number of the trial.
    return MondrianSampler(seed=0, n_startup_trials=4, n_candidates=60)


def objective(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("y", 1e-3, 1.0, log=True)
    return (x - 0.3) ** 2 + y


def main() -> None:
    kind, address, number = sys.argv[1:]
    if kind == "serve":
        run_grpc_proxy_server(RDBStorage(address), host="localhost", port=int(number))
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.load_study(
        study_name="s", storage=open_storage(kind, address), sampler=new_sampler(kind)
    )
    study.optimize(objective, n_trials=int(number))


if __name__ == "__main__":
    main()

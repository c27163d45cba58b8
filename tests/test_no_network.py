"""No module opens a socket: not when it is imported, not while a study runs.

Each test runs code in a process of its own under an audit hook, which Python calls for every
socket, address look-up and request.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

HOOK = """
import sys
seen = []
def hook(event, arguments):
    if event.startswith(("socket.", "urllib.", "http.client", "ftplib.", "smtplib.")):
        seen.append(event)
sys.addaudithook(hook)
"""

IMPORTS = """
import importlib, pkgutil
import mondrian_bo
for module in pkgutil.walk_packages(mondrian_bo.__path__, "mondrian_bo."):
    if module.name.rpartition(".")[2] != "__main__":
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            assert error.name.partition(".")[0] in ("ax", "botorch", "river", "torch"), error
"""

STUDY = """
import optuna
from mondrian_bo import MondrianSampler
def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    if trial.suggest_categorical("kind", ["a", "b"]) == "a":
        x += trial.suggest_int("n", 1, 3)
    trial.set_constraint("low", x - 3)
    return x, -x
sampler = MondrianSampler(seed=0, n_startup_trials=3)
study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler)
study.optimize(objective, n_trials=6, n_jobs=2)
assert len(study.trials) == 6
"""

SAVED = """
from mondrian_bo import Float, MondrianOptimizer, SearchSpace
optimizer = MondrianOptimizer(SearchSpace({"x": Float(0.0, 1.0)}), seed=0)
for _ in range(14):
    point = optimizer.ask()
    optimizer.tell(point, point["x"])
optimizer.save("optimizer.npz")
MondrianOptimizer.load("optimizer.npz").ask()
"""


def _seen_by(code, folder):
    """Return the events of the network that code raises."""
    code = f"{HOOK}\n{code}\nprint('seen:', *seen)"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()[1:]


@pytest.mark.parametrize("code", [IMPORTS, STUDY, SAVED], ids=["imports", "study", "saved"])
def test_nothing_opens_a_socket(code, tmp_path):
    assert _seen_by(code, tmp_path) == []


def test_sockets_are_seen(tmp_path):
    code = "import socket; socket.socket().close()"
    assert "socket.__new__" in _seen_by(code, tmp_path)

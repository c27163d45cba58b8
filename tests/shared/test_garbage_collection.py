"""The garbage collector waits while modules load, and works as before afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import optuna
import pytest

import mondrian_bo
from mondrian_bo.shared.garbage_collection import without_collections

# Each script runs in its own process: the collector belongs to the whole process.
IMPORT = """
import gc, numpy
before = gc.get_stats()[0]["collections"]
from mondrian_bo import MondrianOptimizer
assert gc.isenabled()
print(gc.get_stats()[0]["collections"] - before)
"""

FROZEN = """
import gc
from mondrian_bo.shared.garbage_collection import without_collections

gc.freeze()
before = gc.get_freeze_count()
with without_collections():
    pass
print(gc.get_freeze_count() - before)
"""

OFF = """
import gc
from mondrian_bo.shared.garbage_collection import without_collections

gc.disable()
with without_collections():
    pass
print(int(gc.isenabled()))
"""

AFTER_AN_ERROR = """
import gc
from mondrian_bo.shared.garbage_collection import without_collections

try:
    with without_collections(), without_collections():
        assert not gc.isenabled()
        raise ImportError
except ImportError:
    print(int(not gc.isenabled()))
"""


@pytest.mark.parametrize(
    ("script", "most"),
    [(IMPORT, 5), (FROZEN, 0), (OFF, 0), (AFTER_AN_ERROR, 0)],
    ids=["import", "frozen", "off", "after an error"],
)
def test_the_collector_waits_and_is_left_as_it_was(script, most):
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) <= most


def test_garbage_made_while_loading_is_found_later():
    class Node:
        pass

    with without_collections():
        node = Node()
        node.itself = node
        ghost = weakref.ref(node)
        del node
    assert ghost() is not None
    gc.collect()
    assert ghost() is None


def test_what_is_loaded_is_not_made_old_again(monkeypatch):
    def run():
        sampler = mondrian_bo.MondrianSampler(seed=0, n_startup_trials=3)
        study = optuna.create_study(sampler=sampler)
        # Trials draw parameters of their own, and the model is built again and again.
        study.optimize(lambda trial: trial.suggest_float(f"x{trial.number % 5}", 0.0, 1.0), 12)

    run()
    n_freezes = []
    freeze = gc.freeze
    monkeypatch.setattr(gc, "freeze", lambda: (n_freezes.append(1), freeze()))
    run()
    assert not n_freezes

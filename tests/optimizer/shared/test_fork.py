"""A process that is forked while threads of its parent use the models does not hang."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, threading, time
import optuna
from mondrian_bo import Float, MondrianOptimizer, MondrianSampler, SearchSpace

optuna.logging.set_verbosity(optuna.logging.CRITICAL)
space = {"x": optuna.distributions.FloatDistribution(0.0, 1.0)}
optimizer = MondrianOptimizer(SearchSpace({"x": Float(0.0, 1.0)}), seed=0, n_startup_trials=2)
sampler = MondrianSampler(seed=0, n_startup_trials=2)

def work(study, n_trials):
    for _ in range(n_trials):
        params = optimizer.ask()
        optimizer.tell(params, params["x"])
        trial = study.ask(space)
        study.tell(trial, trial.params["x"])

work(optuna.create_study(sampler=sampler), 4)
study = optuna.create_study(sampler=sampler)
threading.Thread(target=work, args=(study, 10**6), daemon=True).start()
for i in range(8):
    time.sleep(0.01 * i)
    child = os.fork()
    if child == 0:
        # A child that hangs is ended by the signal.
        signal.alarm(300)
        work(optuna.create_study(sampler=sampler), 3)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="systems that fork")
def test_children_of_a_busy_process():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], timeout=600)
    assert done.returncode == 0


COMPILING = """
import os, signal, threading, time
import numba
from numba.core.compiler_lock import global_compiler_lock
import mondrian_bo.shared.forks

@numba.njit
def increment(x):
    return x + 1

is_compiling = threading.Event()

def compile_long():
    with global_compiler_lock:
        is_compiling.set()
        time.sleep(1.0)

threading.Thread(target=compile_long).start()
is_compiling.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if increment(1) == 2 else 1)
status = os.waitpid(child, 0)[1]
assert increment(2) == 3
os._exit(0 if status == 0 else 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="systems that fork")
def test_a_fork_waits_until_other_threads_have_compiled():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", COMPILING], timeout=300)
    assert done.returncode == 0


LOADING = """
import os, signal, sys, threading, time
from importlib.machinery import ModuleSpec
import mondrian_bo.shared.forks

is_loading = threading.Event()

class Slow:
    def find_spec(self, name, path, target=None):
        return ModuleSpec(name, self) if name == "mondrian_bo.slow" else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        is_loading.set()
        time.sleep(1.0)
        module.value = 1

sys.meta_path.insert(0, Slow())
threading.Thread(target=__import__, args=("mondrian_bo.slow",)).start()
is_loading.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    from mondrian_bo.slow import value
    os._exit(0 if value == 1 else 1)
os._exit(0 if os.waitpid(child, 0)[1] == 0 else 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="systems that fork")
def test_a_fork_waits_until_other_threads_have_loaded_modules():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", LOADING], timeout=300)
    assert done.returncode == 0

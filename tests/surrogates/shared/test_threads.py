"""BLAS is limited to one thread inside the context and restored afterwards."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# Each script runs in its own process: libraries that other tests load may set threads, too.
START = """
import threading
from concurrent.futures import ThreadPoolExecutor
from mondrian_bo.surrogates.shared.threads import _controllers, single_threaded_blas

def n_threads():
    return [pool["num_threads"] for pool in _controllers()[0].info() if pool["user_api"] == "blas"]

before = n_threads()
assert before

inside, leave = threading.Event(), threading.Event()

def other():
    with single_threaded_blas():
        inside.set()
        assert leave.wait(30)
        assert set(n_threads()) == {1}
    return n_threads()
"""

LEAVES_FIRST = """
with ThreadPoolExecutor(1) as pool:
    future = pool.submit(other)
    assert inside.wait(30)
    with single_threaded_blas(), single_threaded_blas():
        leave.set()
        assert set(future.result()) == {1}
        assert set(n_threads()) == {1}
    # The thread that entered first is still alive.
    assert n_threads() == before
"""

LEAVES_LAST = """
with ThreadPoolExecutor(1) as pool:
    with single_threaded_blas():
        future = pool.submit(other)
        assert inside.wait(30)
    assert set(n_threads()) == {1}
    leave.set()
    assert future.result() == before
    assert n_threads() == before
"""

AFTER_THE_MAIN_THREAD = """
with single_threaded_blas():
    assert set(n_threads()) == {1}
assert n_threads() == before

leave.set()
with ThreadPoolExecutor(1) as pool:
    assert pool.submit(other).result() == before
assert n_threads() == before
"""

AFTER_AN_ERROR = """
try:
    with single_threaded_blas():
        raise ZeroDivisionError
except ZeroDivisionError:
    pass
assert n_threads() == before
"""


INTERRUPTED = """
from mondrian_bo.surrogates.shared import threads

def interrupted(self):
    raise KeyboardInterrupt

lift = threads._ProcessLimit.lift
threads._ProcessLimit.lift = interrupted
try:
    with single_threaded_blas():
        pass
except KeyboardInterrupt:
    threads._ProcessLimit.lift = lift
assert set(n_threads()) == {1}
n_before = threading.active_count()
with single_threaded_blas():
    assert set(n_threads()) == {1}
    # The limit that nobody lifted serves again.
    assert threading.active_count() == n_before
assert n_threads() == before
"""

WITHOUT_A_LIMIT = """
import sys
from mondrian_bo.surrogates.shared import threads

# Threads that wait for the same event take turns in every possible order.
sys.setswitchinterval(1e-6)
threads._PATIENCE = 0.001
controllers = _controllers()

class Stuck:
    lib_controllers = controllers[0].lib_controllers

    def limit(self, **settings):
        stuck.wait()
        return controllers[0].limit(**settings)

for _ in range(300):
    stuck = threading.Event()
    threads._controllers = lambda: (Stuck(), controllers[1])
    for _ in range(3):
        with single_threaded_blas():
            pass
    stuck.set()
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(30)
    threads._controllers = lambda: controllers
    assert n_threads() == before
"""


@pytest.mark.parametrize(
    "script",
    [
        LEAVES_FIRST,
        LEAVES_LAST,
        AFTER_THE_MAIN_THREAD,
        AFTER_AN_ERROR,
        INTERRUPTED,
        WITHOUT_A_LIMIT,
    ],
    ids=[
        "leaves first",
        "leaves last",
        "after the main thread",
        "after an error",
        "interrupted",
        "stuck",
    ],
)
def test_the_former_number_of_threads_is_restored(script):
    run = subprocess.run(
        [sys.executable, "-c", START + script], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr


ONE_THREAD = """
from mondrian_bo.surrogates.shared import threads

assert set(before) == {1}
n_before = threading.active_count()
ended = threads._ProcessLimit()
ended.lift()
# An interrupt left a limit behind that has ended since.
threads._limits[threading.get_ident()] = ended
for _ in range(2):
    with single_threaded_blas():
        assert threading.active_count() == n_before
assert not threads._limits
"""


def test_a_process_with_one_thread_starts_no_other_one():
    run = subprocess.run(
        [sys.executable, "-c", START + ONE_THREAD],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stderr

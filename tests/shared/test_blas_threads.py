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
from mondrian_bo.shared import blas_threads
from mondrian_bo.shared.blas_threads import _controllers, single_threaded_blas

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
def interrupted():
    raise KeyboardInterrupt

for name in ("_lift", "_limit"):
    whole = getattr(blas_threads, name)
    setattr(blas_threads, name, interrupted)
    try:
        with single_threaded_blas():
            pass
    except KeyboardInterrupt:
        setattr(blas_threads, name, whole)
    with single_threaded_blas():
        assert set(n_threads()) == {1}
    assert n_threads() == before
"""

IN_A_FORK = """
import os, sys

with ThreadPoolExecutor(1) as pool:
    future = pool.submit(other)
    assert inside.wait(30)
    if (child := os.fork()) == 0:
        with single_threaded_blas():
            assert set(n_threads()) == {1}
        os._exit(0 if n_threads() == before else 1)
    assert os.waitpid(child, 0)[1] == 0
    leave.set()
    assert future.result() == before
"""

IN_ANY_ORDER = """
import random, sys

# Threads take turns in every possible order.
sys.setswitchinterval(1e-6)

def often(seed):
    order = random.Random(seed)
    for _ in range(200):
        with single_threaded_blas():
            assert set(n_threads()) == {1}
            for _ in range(order.randrange(50)):
                pass

with ThreadPoolExecutor(4) as pool:
    list(pool.map(often, range(4)))
assert n_threads() == before
assert not blas_threads._inside
"""


@pytest.mark.parametrize(
    "script",
    [
        LEAVES_FIRST,
        LEAVES_LAST,
        AFTER_THE_MAIN_THREAD,
        AFTER_AN_ERROR,
        INTERRUPTED,
        IN_A_FORK,
        IN_ANY_ORDER,
    ],
    ids=[
        "leaves first",
        "leaves last",
        "after the main thread",
        "after an error",
        "interrupted",
        "in a fork",
        "in any order",
    ],
)
def test_the_former_number_of_threads_is_restored(script):
    run = subprocess.run(
        [sys.executable, "-c", START + script], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr


ONE_THREAD = """
assert set(before) == {1}
with single_threaded_blas():
    assert blas_threads._former is None
assert n_threads() == before
"""


def test_a_process_with_one_thread_changes_no_number():
    run = subprocess.run(
        [sys.executable, "-c", START + ONE_THREAD],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stderr

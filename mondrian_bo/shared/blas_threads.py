"""A limit of one thread for linear algebra (BLAS)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import scipy.linalg  # noqa: F401  (loads its BLAS library, so that the controller finds it)
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_lock = threading.Lock()
"""Guards `_inside` and `_former`, and the numbers of threads while they change."""

_inside: set[int] = set()
"""Identifiers of the Python threads inside :func:`single_threaded_blas`."""

_former: tuple[int, ...] | None = None
"""Numbers of threads of :func:`_shared_libraries` before the limit, or None if none is in force.

It is set before the first number changes and removed after the last one is restored. An interrupt
in between leaves it, and the next thread to leave restores the numbers.
"""

_thread_state = threading.local()
"""Whether the current Python thread is inside (`is_limited`)."""


@lru_cache(maxsize=1)
def _controllers() -> tuple[ThreadpoolController, ThreadpoolController]:
    """Return controllers of all libraries and of those that use OpenMP.

    They are kept, because finding the libraries takes a thousand times as long as a limit.
    """
    controller = ThreadpoolController()
    return controller, controller.select(threading_layer="openmp")


@lru_cache(maxsize=1)
def _shared_libraries() -> tuple[Any, ...]:
    """Return the BLAS libraries whose threads serve the whole process."""
    every, per_thread = _controllers()
    return tuple(
        library
        for library in every.lib_controllers
        if library.user_api == "blas" and library not in per_thread.lib_controllers
    )


def _limit() -> None:
    """Limit the shared libraries to one thread."""
    global _former
    libraries = _shared_libraries()
    if _former is None:
        numbers = tuple(library.num_threads for library in libraries)
        if all(number == 1 for number in numbers):
            return
        _former = numbers
    for library in libraries:
        library.set_num_threads(1)


def _lift() -> None:
    """Restore the shared libraries if no thread is inside."""
    global _former
    libraries = _shared_libraries()
    if _former is not None and not _inside:
        for library, number in zip(libraries, _former, strict=True):
            library.set_num_threads(number)
        if _former == tuple(library.num_threads for library in libraries):
            _former = None
    for library in libraries:
        # From version 3.8 on, threadpoolctl accepts changes only from the thread that called it
        # first. The thread that restores the numbers may be another one than that which limits.
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread inside a ``with`` block.

    For matrices of a few hundred rows, several threads cost more time than they save, and far more
    on a machine with other load. Python threads may be inside at the same time: the limit holds
    until the last one leaves. A nested block of the same thread costs nothing.
    """
    if getattr(_thread_state, "is_limited", False):
        yield
        return
    thread = threading.get_ident()
    try:
        with _lock:
            # An interrupted exit leaves the thread in the set, and this call's exit removes it.
            _inside.add(thread)
            _limit()
        # OpenMP has a number of threads for each Python thread, so each sets it.
        with _controllers()[1].limit(limits=1, user_api="blas"):
            _thread_state.is_limited = True
            yield
    finally:
        _thread_state.is_limited = False
        with _lock:
            _inside.discard(thread)
            _lift()


def _start_child() -> None:
    """Give a forked process a lock of its own; the other threads inside are not in it."""
    global _lock
    _lock = threading.Lock()
    _inside.clear()
    _thread_state.is_limited = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_child)

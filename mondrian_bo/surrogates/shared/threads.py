"""Linear algebra on one thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import scipy.linalg  # noqa: F401  (so that its library is there to be told)
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@lru_cache(maxsize=1)
def _controllers() -> tuple[ThreadpoolController, ThreadpoolController]:
    # Finding the libraries takes a thousand times as long as telling them.
    controller = ThreadpoolController()
    return controller, controller.select(threading_layer="openmp")


class _Limit:
    """The limit of libraries whose threads serve the whole process.

    A thread of its own holds it: threadpoolctl (3.8 and later) listens to nobody but the thread
    that came first, for as long as that one lives, and whoever comes first here need not be the
    last to leave.
    """

    def __init__(self) -> None:
        self._is_set, self._over = threading.Event(), threading.Event()
        self._holder = threading.Thread(target=self._hold, daemon=True)
        self._holder.start()
        self._is_set.wait()

    def _hold(self) -> None:
        try:
            with _controllers()[0].limit(limits=1, user_api="blas"):
                self._is_set.set()
                self._over.wait()
        finally:
            self._is_set.set()

    def lift(self) -> None:
        self._over.set()
        self._holder.join()


_lock = threading.Lock()
_limits: list[_Limit] = []
"""The limit in force, once for each thread of Python inside of it."""
_mine = threading.local()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Let linear algebra run on one thread for the time of a ``with`` block.

    On matrices of a few hundred rows more threads cost more than they gain, and a great deal on a
    machine that has other things to do. Blocks may overlap, on several threads of Python; within
    another of the same thread a block costs nothing.
    """
    if getattr(_mine, "is_limited", False):
        yield
        return
    with _lock:
        limit = _limits[0] if _limits else _Limit()
        _limits.append(limit)
    try:
        # OpenMP counts for each thread of Python by itself.
        with _controllers()[1].limit(limits=1, user_api="blas"):
            _mine.is_limited = True
            yield
    finally:
        _mine.is_limited = False
        with _lock:
            _limits.pop()
            if not _limits:
                limit.lift()

"""A limit of one thread for linear algebra (BLAS)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import scipy.linalg  # noqa: F401  (loads its BLAS library, so that the controller finds it)
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@lru_cache(maxsize=1)
def _controllers() -> tuple[ThreadpoolController, ThreadpoolController]:
    """Return controllers of all libraries and of those that use OpenMP.

    They are kept, because finding the libraries takes a thousand times as long as a limit.
    """
    controller = ThreadpoolController()
    return controller, controller.select(threading_layer="openmp")


class _ProcessLimit:
    """A limit of the BLAS libraries whose threads serve the whole process.

    A thread of its own sets and lifts the limit: threadpoolctl (3.8 and later) accepts changes only
    from the thread that called it first, as long as that thread lives. The first thread to enter
    :func:`single_threaded_blas` may not be the last one to leave it.
    """

    def __init__(self) -> None:
        self._is_set, self._may_end = threading.Event(), threading.Event()
        self._holder = threading.Thread(target=self._hold, daemon=True)
        self._holder.start()
        self._is_set.wait()

    def _hold(self) -> None:
        try:
            with _controllers()[0].limit(limits=1, user_api="blas"):
                self._is_set.set()
                self._may_end.wait()
        finally:
            self._is_set.set()

    def lift(self) -> None:
        """Restore the former numbers of threads."""
        self._may_end.set()
        self._holder.join()


_lock = threading.Lock()
"""Guards `_limits`."""

_limits: list[_ProcessLimit] = []
"""The limit in force, once for each Python thread inside :func:`single_threaded_blas`."""

_thread_state = threading.local()
"""Whether the current Python thread is inside (`is_limited`)."""


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
    with _lock:
        limit = _limits[0] if _limits else _ProcessLimit()
        _limits.append(limit)
    try:
        # OpenMP has a number of threads for each Python thread, so each sets it.
        with _controllers()[1].limit(limits=1, user_api="blas"):
            _thread_state.is_limited = True
            yield
    finally:
        _thread_state.is_limited = False
        with _lock:
            _limits.pop()
            if not _limits:
                limit.lift()

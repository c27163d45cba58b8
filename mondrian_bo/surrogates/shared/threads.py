"""A limit of one thread for linear algebra (BLAS)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import scipy.linalg  # noqa: F401  (loads its BLAS library, so that the controller finds it)
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_PATIENCE = 5.0
"""Seconds to wait for the thread of a limit, which takes about 0.1 ms, or 10 ms the first time."""

_HANDOVER = 0.02
"""Seconds to wait for the end of an earlier limit; one that is stuck may never end."""

_change = threading.Lock()
"""Held while a limit is in force, so that limits never overlap.

The earlier of two overlapping limits restores all threads, and then the later one restores one.
"""


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

    The threads signal each other with locks: an exception in a wait for an event, as from Ctrl-C,
    may end as an error of the condition inside of it. No wait is for ever: where Ctrl-C came while
    numba compiled, the main thread may keep the lock of LLVM, and the thread of the limit stops if
    the garbage collector frees compiled code in it. The calculation then goes on without a limit.
    """

    def __init__(self) -> None:
        self._is_set, self._may_end = threading.Lock(), threading.Lock()
        self._is_set.acquire()
        self._may_end.acquire()
        self._holder = threading.Thread(target=self._hold, daemon=True)
        try:
            self._holder.start()
            self._is_set.acquire(timeout=_PATIENCE)
        except BaseException:
            # Interrupted: nobody will lift this limit.
            self._may_end.release()
            raise

    def _hold(self) -> None:
        global _in_force
        may_change = _change.acquire(timeout=_HANDOVER)
        try:
            if may_change:
                with _controllers()[0].limit(limits=1, user_api="blas"):
                    _in_force = self
                    self._is_set.release()
                    self._may_end.acquire()
                    _in_force = None
        finally:
            if may_change:
                _change.release()
            # Also after a failure: the constructor waits for this lock.
            if self._is_set.locked():
                self._is_set.release()

    @property
    def is_lifted(self) -> bool:
        """Whether the limit ends, or has ended."""
        return not self._may_end.locked()

    def lift(self) -> None:
        """Restore the former numbers of threads."""
        self._may_end.release()
        self._holder.join(timeout=_PATIENCE)


_in_force: _ProcessLimit | None = None
"""The limit in force, also one whose last user was interrupted before lifting it."""

_lock = threading.Lock()
"""Guards `_limits`."""

_limits: dict[int, _ProcessLimit] = {}
"""The limit in force, by identifier of each Python thread inside :func:`single_threaded_blas`."""

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
    thread = threading.get_ident()
    try:
        with _lock:
            # An entry of this thread is left over from an interrupted exit, and is replaced.
            limit = next(iter(_limits.values()), _in_force)
            if limit is None or limit.is_lifted:
                # A limit costs a thread that waits for its turn, long on a busy machine. None is
                # needed where all libraries have one thread, as with OMP_NUM_THREADS=1, and no
                # earlier limit, which may be about to end, is the reason.
                libraries = _controllers()[0].lib_controllers
                has_one = not _change.locked() and all(
                    one.num_threads == 1 for one in libraries if one.user_api == "blas"
                )
                limit = None if has_one else _ProcessLimit()
            if limit is None:
                _limits.pop(thread, None)
            else:
                _limits[thread] = limit
        # OpenMP has a number of threads for each Python thread, so each sets it.
        with _controllers()[1].limit(limits=1, user_api="blas"):
            _thread_state.is_limited = True
            yield
    finally:
        _thread_state.is_limited = False
        with _lock:
            left = _limits.pop(thread, None)
            if left is not None and not _limits:
                left.lift()


def _start_child() -> None:
    """Give a forked process locks of its own; the threads that hold limits are not in it."""
    global _lock, _change, _in_force
    _lock, _change, _in_force = threading.Lock(), threading.Lock(), None
    _limits.clear()
    _thread_state.is_limited = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_child)

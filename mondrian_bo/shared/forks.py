"""Forked processes: their objects get locks of their own, and nothing stays half done in them."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from typing import Any

_alive: weakref.WeakSet[HasLock] = weakref.WeakSet()
"""All objects with a lock. A forked process makes new locks for them."""

_held: list[Any] = []
"""The lock of numba's compiler, while a process forks."""

_LOADED_LATE = ("mondrian_bo", "scipy")
"""Packages whose modules a search may load at any call."""

_PATIENCE = 60.0
"""Longest wait for modules that another thread loads, in seconds: our choice."""


class HasLock:
    """An object that threads share. Copies, unpickled objects and forked processes have own locks.

    A subclass that drops more from its state, or makes more anew, extends these methods.
    """

    def __init__(self) -> None:
        self.renew_lock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock."""
        state = self.__dict__.copy()
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore, with a lock of its own."""
        self.__dict__.update(state)
        self.renew_lock()

    def renew_lock(self) -> None:
        """Make a lock, at the start and in a forked process.

        The thread that holds the former lock does not exist in a forked process.
        """
        self._lock = threading.RLock()
        _alive.add(self)


def _renew_locks() -> None:
    for one in list(_alive):
        one.renew_lock()


def _is_loading() -> bool:
    """Return whether a module that a search needs is half loaded."""
    return any(
        name.partition(".")[0] in _LOADED_LATE
        and getattr(getattr(module, "__spec__", None), "_initializing", False)
        for name, module in list(sys.modules.items())
    )


def _wait_for_modules() -> None:
    # In a child of a process that loads a module in another thread, the module would stay half
    # loaded: that thread does not exist there.
    end = time.monotonic() + _PATIENCE
    while _is_loading() and time.monotonic() < end:
        time.sleep(0.001)


def _wait_for_compiler() -> None:
    # A child of a process that compiles in another thread would wait for ever at its first
    # compilation: the thread that holds the lock does not exist there.
    compiler = sys.modules.get("numba.core.compiler_lock")
    if compiler is not None:
        compiler.global_compiler_lock.acquire()
        _held.append(compiler.global_compiler_lock)


def _free_compiler() -> None:
    while _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_wait_for_compiler, after_in_parent=_free_compiler, after_in_child=_free_compiler
    )
    os.register_at_fork(after_in_child=_renew_locks)
    # The hooks before a fork run in reverse order: a module may need the compiler to load.
    os.register_at_fork(before=_wait_for_modules)

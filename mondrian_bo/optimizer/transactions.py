"""Calls that happen completely or not at all, one after the other."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

State = TypeVar("State")
"""What an object returns to after an interruption."""

Owner = TypeVar("Owner", bound="Transactional[Any]")
"""The class of a decorated method."""

Result = TypeVar("Result")
"""What a decorated method returns."""

Arguments = ParamSpec("Arguments")
"""The parameters of a decorated method."""

_alive: weakref.WeakSet[HasLock] = weakref.WeakSet()
"""All objects with a lock. A forked process makes new locks for them."""


class HasLock(Protocol):
    """An object that makes a lock of its own."""

    def renew_lock(self) -> None:
        """Make a lock."""
        ...


def renew_at_fork(one: HasLock) -> None:
    """Let an object make a new lock in every forked process.

    The thread that holds the former lock does not exist there.
    """
    _alive.add(one)


class Transactional(Generic[State]):
    """An object whose changes are transactions: an exception may come at any moment.

    Methods that change it have the decorator :func:`transaction`. A subclass implements `_undo`,
    and its methods set `_before` to what `_undo` needs, before they change anything.
    """

    def __init__(self) -> None:
        self._is_changing = False
        self._before: State | None = None
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
        """Make a lock."""
        self._lock = threading.RLock()
        self._is_inside = False
        renew_at_fork(self)

    def _undo(self, before: State | None) -> None:
        """Undo the changes of a transaction that did not end.

        Parameters
        ----------
        before : object or None
            What the transaction set `_before` to. If this call is interrupted, another one follows
            with the same argument.
        """
        raise NotImplementedError


def transaction(
    method: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """Let a method run alone, and undo it at the next transaction if it does not end.

    An exception, such as that of Ctrl-C, may come between any two steps of a method. A transaction
    inside of another one is part of it.
    """

    @wraps(method)
    def run(self: Owner, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with self._lock:
            is_part = self._is_inside
            if not is_part:
                if self._is_changing:
                    self._undo(self._before)
                self._before = None
                self._is_changing = True
            try:
                self._is_inside = True
                result = method(self, *args, **kwargs)
                if not is_part:
                    self._is_changing = False
                return result
            finally:
                self._is_inside = is_part

    return run


def _renew_locks() -> None:
    for one in list(_alive):
        one.renew_lock()


_held: list[Any] = []
"""The lock of numba's compiler, while a process forks."""


_LOADED_LATE = ("mondrian_bo", "scipy")
"""Packages whose modules a search may load at any call."""

_PATIENCE = 60.0
"""Longest wait for modules that another thread loads, in seconds: our choice."""


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

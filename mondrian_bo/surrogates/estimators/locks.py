"""Threads that share an estimator: several may read it, and one that changes it is alone.

Compiled code reads arrays that learning changes and replaces. Without a lock, a prediction beside
learning would read outside of them.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from mondrian_bo.shared.forks import HasLock

Method = TypeVar("Method", bound=Callable[..., Any])
"""A method of an estimator."""

Locks = tuple[Any, Any, Any, Any]
"""Four reentrant locks. Their type has no public name."""


_numbers = itertools.count()
"""Numbers of threads, in the order in which they first read."""

_this_thread = threading.local()
"""Holds the number of this thread."""


class ReadersLock(HasLock):
    """Four locks: a reader holds one of them, and who changes the estimator holds all.

    With one lock, readers would not run together. With a count of readers, an exception such as
    that of Ctrl-C, between the count and the call, would leave the count wrong. A `with` statement
    has no such moment.
    """

    locks: Locks

    def renew_lock(self) -> None:
        """Make the locks, at the start and in a forked process."""
        super().renew_lock()
        self.locks = self._lock, threading.RLock(), threading.RLock(), threading.RLock()

    def __reduce__(self) -> tuple[type[ReadersLock], tuple[()]]:
        """Return what makes a copy: it has locks of its own."""
        return ReadersLock, ()

    def of_reader(self, takes_turns: bool) -> Any:
        """Return the lock that this thread holds while it reads; turns are those of readers."""
        if takes_turns:
            return self._lock
        number = getattr(_this_thread, "number", None)
        if number is None:
            number = _this_thread.number = next(_numbers) % 4
        return self.locks[number]


def lock_of(estimator: Any) -> ReadersLock:
    """Return the lock of an estimator.

    The first call makes it: in scikit-learn, `__init__` only stores the parameters.
    """
    attributes: dict[str, Any] = estimator.__dict__
    lock: ReadersLock | None = attributes.get("_readers_lock")
    if lock is None:
        # In one step, as another thread may be here at the same time.
        lock = attributes.setdefault("_readers_lock", ReadersLock())
    return lock


def learns(method: Method) -> Method:
    """Let a method that changes an estimator run alone."""

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        first, second, third, fourth = lock_of(self).locks
        with first, second, third, fourth:
            return method(self, *args, **kwargs)

    return cast(Method, run)


def reads(method: Method) -> Method:
    """Let a method that does not learn run beside other readers.

    With `_readers_take_turns` of the estimator, readers run one after the other.

    Such a method calls none that changes the estimator: two readers would wait for each other.
    """

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        lock = lock_of(self)
        while True:
            with lock.of_reader(self._readers_take_turns):
                if self._unfinished is None:
                    return method(self, *args, **kwargs)
            self._undo_unfinished()

    return cast(Method, run)

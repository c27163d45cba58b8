"""What samplers and pruners remember of studies: not pickled, and behind a lock."""

from __future__ import annotations

import threading
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from mondrian_bo.optimizer.transactions import renew_at_fork

Memory = TypeVar("Memory")
"""What is remembered of a study."""


class RemembersStudies(Generic[Memory]):
    """An object that threads share, with a memory of each study.

    `_memory` holds, for each storage, what is remembered by key. A copy and an unpickled object
    have a lock of their own and remember nothing: studies are read again from their storage.
    """

    def __init__(self) -> None:
        self.renew_lock()
        self._memory: WeakKeyDictionary[object, dict[object, Memory]] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock and the memory of studies, which are read again from their storage."""
        state = self.__dict__.copy()
        del state["_lock"], state["_memory"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore, with a lock of its own and no memory of studies."""
        self.__dict__.update(state)
        RemembersStudies.__init__(self)

    def renew_lock(self) -> None:
        """Make a lock, at the start and in a forked process."""
        self._lock = threading.RLock()
        renew_at_fork(self)

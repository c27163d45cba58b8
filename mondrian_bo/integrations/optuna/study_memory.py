"""What samplers and pruners remember of studies: not pickled, and behind a lock."""

from __future__ import annotations

from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from mondrian_bo.optimizer.shared.forks import HasLock

Memory = TypeVar("Memory")
"""What is remembered of a study."""


class RemembersStudies(HasLock, Generic[Memory]):
    """An object that threads share, with a memory of each study.

    `_memory` holds, for each storage, what is remembered by key. A copy and an unpickled object
    have a lock of their own and remember nothing: studies are read again from their storage.
    """

    def __init__(self) -> None:
        super().__init__()
        self._memory: WeakKeyDictionary[object, dict[object, Memory]] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock and the memory of studies, which are read again from their storage."""
        state = super().__getstate__()
        del state["_memory"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore, with a lock of its own and no memory of studies."""
        super().__setstate__({**state, "_memory": WeakKeyDictionary()})

"""What samplers and pruners remember of studies: not pickled, and behind a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import optuna

from mondrian_bo.shared.forks import HasLock

Memory = TypeVar("Memory")
"""What is remembered of a study."""


class RemembersStudies(HasLock, Generic[Memory]):
    """An object that threads share, with a memory of each study.

    A copy and an unpickled object have a lock of their own and remember nothing: studies are read
    again from their storage.
    """

    def __init__(self) -> None:
        super().__init__()
        # By storage and key. The storage is an object: all studies in memory have the same id.
        self._memory: WeakKeyDictionary[object, dict[tuple[Any, ...], Memory]]
        self._memory = WeakKeyDictionary()

    def _recall(self, study: optuna.Study, make: Callable[[], Memory], *purpose: str) -> Memory:
        """Return what is remembered of a study for a purpose; `make` makes it at the first call.

        The first call for a study forgets studies that have been deleted.

        Hyperband shows the trials of one bracket at a time, so each bracket is a study of its own.
        """
        memories = self._memory.setdefault(study._storage, {})
        key = (study._study_id, getattr(study, "_bracket_id", None), *purpose)
        if key not in memories:
            if memories:
                present = {one._study_id for one in study._storage.get_all_studies()}
                for former in [one for one in memories if one[0] not in present]:
                    del memories[former]
            memories[key] = make()
        return memories[key]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock and the memory of studies, which are read again from their storage."""
        state = super().__getstate__()
        del state["_memory"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore, with a lock of its own and no memory of studies."""
        super().__setstate__({**state, "_memory": WeakKeyDictionary()})

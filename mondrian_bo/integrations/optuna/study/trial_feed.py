"""New trials of an Optuna study: each finished one once, in the order in which they finished."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple, TypeAlias

import optuna
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, TrialState

_MOST_OPEN = 16
"""Unfinished trials up to which trials in memory are read one by one; each may fail. Our choice."""

_Trials: TypeAlias = Mapping[int, FrozenTrial] | Sequence[FrozenTrial]
"""Trials by their position in the study."""


class Feed(NamedTuple):
    """What a read of a study returns.

    Attributes
    ----------
    finished : list of FrozenTrial
        The trials that have finished since the latest read, in the order in which they finished.
    running : list of FrozenTrial
        The running trials, in the order of the study.
    is_new : bool
        Whether the study was read from its first trial. The caller forgets what it absorbed before.
    """

    finished: list[FrozenTrial]
    running: list[FrozenTrial]
    is_new: bool


class TrialFeed:
    """Reads the trials of one study, each finished one once.

    The caller absorbs what a read returns, and then acknowledges it. The study is read from its
    first trial

    - at the first read;
    - if the latest read was not acknowledged: it was interrupted, and a part of its trials may
      have been absorbed;
    - if there are fewer trials than before, or the latest trial that was read has finished at
      another moment: the study was edited, or another one has got the id of a deleted study.
    """

    def __init__(self) -> None:
        self._is_acknowledged = False
        self._n_seen = 0
        self._last_read: tuple[int, datetime] | None = None
        self._open: set[int] = set()

    def read(self, study: optuna.Study) -> Feed:
        """Return what is new in a study; O(new and running trials) for a study in memory."""
        latest = self._read_on(study)
        is_new = latest is None
        self._is_acknowledged = False
        if latest is None:
            self._n_seen, self._last_read, self._open = 0, None, set()
            latest = _read_all(study)
        trials, n_trials = latest
        self._open.update(range(self._n_seen, n_trials))
        self._n_seen = n_trials
        # In the order in which they finished, as another reader has noticed them one by one.
        finished = sorted(
            (local_time(trials[position].datetime_complete), position)
            for position in self._open
            if trials[position].state.is_finished()
        )
        if finished:
            completed, last = finished[-1]
            self._last_read = last, completed
            # A new set: one from which elements are removed stays as large as it was.
            self._open = self._open.difference(position for _, position in finished)
        running = [
            trials[position]
            for position in sorted(self._open)
            if trials[position].state == TrialState.RUNNING
        ]
        return Feed([trials[position] for _, position in finished], running, is_new)

    def acknowledge(self) -> None:
        """Note that the caller has absorbed all that the latest read returned."""
        self._is_acknowledged = True

    def _read_on(self, study: optuna.Study) -> tuple[_Trials, int] | None:
        """Return open, new and maybe other trials, and the number of all trials of the study.

        None if the study must be read from its first trial.
        """
        if not self._is_acknowledged:
            return None
        # The brackets of Hyperband are studies of another class, with some of the trials.
        in_memory = type(study) is optuna.Study and type(study._storage) is InMemoryStorage
        if in_memory and self._last_read is not None and len(self._open) <= _MOST_OPEN:
            needed = [*self._open, self._last_read[0]]
            trials, n_trials = _read_in_memory(study, self._n_seen, needed)
        else:
            trials, n_trials = _read_all(study)
        if n_trials < self._n_seen:
            return None
        if self._last_read is not None:
            # Storages reuse the ids of deleted studies.
            position, completed = self._last_read
            if local_time(trials[position].datetime_complete) != completed:
                return None
        return trials, n_trials


def local_time(moment: datetime | None) -> datetime:
    """Return a moment in local time without a zone; the first of all moments for None.

    Optuna's moments are local times without a zone. Trials that a user adds may have a zone.
    """
    if moment is None:
        return datetime.min
    return moment if moment.tzinfo is None else moment.astimezone().replace(tzinfo=None)


def _read_all(study: optuna.Study) -> tuple[_Trials, int]:
    """Return all trials of a study and their number."""
    trials = study.get_trials(deepcopy=False)
    return trials, len(trials)


def _read_in_memory(
    study: optuna.Study, n_seen: int, positions: Iterable[int]
) -> tuple[_Trials, int]:
    """Return trials at some positions and all new ones, by position, and the number of all."""
    # Optuna would copy the list of all trials: 2 ms for 100,000 of them.
    storage, found = study._storage, {}
    id_of = partial(storage.get_trial_id_from_study_id_trial_number, study._study_id)
    try:
        for position in positions:
            found[position] = storage.get_trial(id_of(position))
    except KeyError:
        # A study that was deleted and made again has fewer trials than before.
        n_seen = 0
    try:
        while True:
            found[n_seen] = storage.get_trial(id_of(n_seen))
            n_seen += 1
    except KeyError:
        return found, n_seen

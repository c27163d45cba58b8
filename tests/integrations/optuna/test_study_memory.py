"""What samplers and pruners remember of studies."""

from __future__ import annotations

import copy
import gc
import pickle

import optuna

from mondrian_bo.integrations.optuna.study.study_memory import RemembersStudies


class Counts(RemembersStudies[list]):
    """Remembers one list of each study and purpose."""

    def __init__(self):
        super().__init__()
        self.setting = 7

    def of(self, study, *purpose):
        return self._recall(study, list, *purpose)


def test_each_storage_study_bracket_and_purpose_has_a_memory():
    counts = Counts()
    storage = optuna.storages.InMemoryStorage()
    # Two studies of one storage, and one of another storage that has the same id as the first.
    studies = [optuna.create_study(storage=storage), optuna.create_study(storage=storage)]
    studies.append(optuna.create_study())
    assert studies[0]._study_id == studies[2]._study_id
    for bracket in (0, 1):
        study = optuna.load_study(study_name=studies[0].study_name, storage=storage)
        study._bracket_id = bracket
        studies.append(study)
    purposes = [(), ("reading",), ("suggesting",)]
    found = [counts.of(study, *purpose) for study in studies for purpose in purposes]
    assert len({id(one) for one in found}) == len(studies) * len(purposes)
    again = [counts.of(study, *purpose) for study in studies for purpose in purposes]
    assert all(one is other for one, other in zip(found, again, strict=True))
    # Another object of the same study.
    loaded = optuna.load_study(study_name=studies[1].study_name, storage=storage)
    assert counts.of(loaded) is counts.of(studies[1])


def test_copies_remember_nothing_and_memories_end_with_their_storage():
    counts, study = Counts(), optuna.create_study()
    counts.of(study).append(1)
    for other in (copy.copy(counts), pickle.loads(pickle.dumps(counts))):
        assert other.setting == 7
        assert other.of(study) == []
        assert other._lock is not counts._lock
    assert counts.of(study) == [1]
    del study
    gc.collect()
    assert len(counts._memory) == 0


def test_deleted_studies_are_forgotten_when_the_next_study_is_new():
    counts, storage = Counts(), optuna.storages.InMemoryStorage()
    kept = optuna.create_study(storage=storage)
    counts.of(kept).append(1)
    for _ in range(3):
        study = optuna.create_study(storage=storage)
        counts.of(study, "reading")
        counts.of(study, "suggesting")
        optuna.delete_study(study_name=study.study_name, storage=storage)
    counts.of(optuna.create_study(storage=storage))
    assert counts.of(kept) == [1]
    assert len(counts._memory[storage]) == 2

"""The suite of suggestions: studies of all spaces grow, and the parts of a trial add up."""

from argparse import Namespace

import optuna
import pytest

from mondrian_bo.benchmarks.suites import suggestions
from mondrian_bo.benchmarks.suites.speed.clock import mean
from mondrian_bo.optimizer.search import search


@pytest.fixture(autouse=True)
def few_trials(monkeypatch):
    monkeypatch.setattr(suggestions, "_TIMED", 3)


# Spaces of more floats grow in `test_tables_are_written`.
@pytest.mark.parametrize("space", ["5 floats", "10 mixed parameters", "3 branches of 3 floats"])
def test_a_study_grows(space):
    storage = optuna.storages.InMemoryStorage()
    maximize = search.maximize
    measured = list(suggestions.grow(space, storage, [20, 30], n_seeds=2))
    assert [n_trials for n_trials, *_ in measured] == [20, 30]
    for _, ours, theirs, parts in measured:
        assert len(ours) == len(theirs) == 6
        assert sum(parts) == pytest.approx(mean(ours).cpu)
        assert min(parts) > 0.0
    # One for each sampler and seed, with the trials in which samplers read the random ones.
    ids = [study._study_id for study in storage.get_all_studies()]
    assert [storage.get_n_trials(study_id) for study_id in ids] == [32] * 4
    assert search.maximize is maximize


def test_large_studies_have_more_trials_of_ours(monkeypatch):
    monkeypatch.setattr(suggestions, "_SEVERAL_UP_TO", 20)
    storage = optuna.storages.InMemoryStorage()
    ((_, ours, theirs, parts),) = suggestions.grow("5 floats", storage, [150])
    assert (len(ours), len(theirs)) == (100, 10)
    assert sum(parts) == pytest.approx(mean(ours).cpu)
    ids = [study._study_id for study in storage.get_all_studies()]
    assert [storage.get_n_trials(study_id) for study_id in ids] == [152, 62]


def test_running_trials_are_counted():
    row = suggestions.beside_running(20, 4, 3, 10.0)
    assert row.name == "3 floats, in memory, at 20 trials, 4 running"
    assert row.baseline is not None and row.ours > 0.0


def test_a_worker_holds_its_trials():
    time, memory = suggestions.joining(100)
    assert time.baseline is not None and time.ours > 0.0
    # A row of ten floats and its value are 88 bytes.
    assert memory.unit == "B/trial" and 88 < memory.ours < 100_000


def test_tables_are_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(suggestions, "_IN_MEMORY", (10, 100_000))
    monkeypatch.setattr(suggestions, "_IN_DATABASES", (10,))
    monkeypatch.setattr(suggestions, "_SEEDS", 1)
    row = suggestions.time_row("row", suggestions.Cost(1, 1))
    monkeypatch.setattr(suggestions, "beside_running", lambda *_: row)
    suggestions.run(Namespace(out=tmp_path, trials=10))
    table = (tmp_path / "suggestions.md").read_text()
    assert "| 20 floats, in memory, at 10 trials |" in table
    assert "| 10 floats, SQLite, at 10 trials |" in table
    assert "100,000" not in table
    assert "memory of a worker, 10 floats, at 10 trials" in table
    assert (tmp_path / "parts.md").read_text().count("at 10 trials") == len(suggestions.SPACES) + 1
    assert (tmp_path / "suggestions.json").exists() and "ascent" in capsys.readouterr().out

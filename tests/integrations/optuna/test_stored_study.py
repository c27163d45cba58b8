"""Loading a study changes nothing: files of other programs, empty ones, URLs of all kinds."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import optuna
import pytest

from mondrian_bo.cli import main
from mondrian_bo.integrations.optuna.stored_study import load_study

optuna.logging.set_verbosity(optuna.logging.WARNING)


def _foreign(path: Path) -> None:
    """Make the database of another program."""
    with sqlite3.connect(path) as connection:
        connection.execute("create table studies (subject)")
        connection.execute("insert into studies values ('physics')")
    connection.close()


@pytest.mark.parametrize("kind", ["foreign", "empty"])
@pytest.mark.parametrize("url", ["sqlite:///{}", "sqlite+pysqlite:///file:{}?uri=true&mode=rw"])
def test_other_files_stay_as_they_are(
    kind: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.db"
    _foreign(path) if kind == "foreign" else path.touch()
    before = path.read_bytes()
    assert main(["report", url.format(path), "mine"]) == 2
    error = capsys.readouterr().err
    assert f"'{path}' is no database of Optuna" in error and "version_info" in error
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_damaged_line_of_a_journal_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "journal.log"
    backend = optuna.storages.journal.JournalFileBackend(str(path))
    for name in ("mine", "other"):
        optuna.create_study(study_name=name, storage=optuna.storages.JournalStorage(backend))
    first, *others = path.read_text().splitlines(keepends=True)
    # Optuna skips a last line that is damaged.
    path.write_text("".join([first, "{half a line\n", *others]))
    assert main(["report", str(path), "mine"]) == 2
    assert f"The journal '{path}' has a line that cannot be read" in capsys.readouterr().err


def test_lines_of_another_program_are_no_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "other.log"
    path.write_text('{"level": "info"}\n')
    assert main(["report", str(path), "mine"]) == 2
    assert f"'{path}' is no journal file of Optuna" in capsys.readouterr().err


def test_a_report_has_a_name_that_the_disk_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    study = optuna.create_study(study_name="ü" * 500, storage="sqlite:///studies.db")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    assert main(["report", "sqlite:///studies.db", study.study_name]) == 0
    assert [path.name for path in tmp_path.glob("*.html")] == ["ü" * 100 + ".html"]
    assert main(["report", "sqlite:///studies.db", study.study_name, "--out", "."]) == 2
    assert "this is a folder" in capsys.readouterr().err


def test_a_database_of_optuna_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "studies.db"
    study = optuna.create_study(study_name="mine", storage=f"sqlite:///{path}")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    before = path.read_bytes()
    assert len(load_study(f"sqlite:///{path}").trials) == 3
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["a b.db", "a%20b.db", "a#b.db", "ü&=.db"])
def test_urls_of_a_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative, absolute, with options, as URI: what Optuna has made is found again."""
    monkeypatch.chdir(tmp_path)
    study = optuna.create_study(study_name="mine", storage=f"sqlite:///{name}")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    files = list(tmp_path.iterdir())
    urls = [f"sqlite:///{name}", f"sqlite:///{tmp_path}/{name}", f"sqlite:///{name}?timeout=5"]
    if "#" not in name:
        urls.append(f"sqlite:///file:{tmp_path}/{name}?uri=true&mode=ro")
    for url in urls:
        assert len(load_study(url).trials) == 2
    assert list(tmp_path.iterdir()) == files


@pytest.mark.parametrize("mode", ["", "&mode=rwc"])
def test_a_missing_file_is_not_made(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    for url in (f"sqlite:///{path}", f"sqlite:///file:{path}?uri=true{mode}"):
        with pytest.raises(ValueError, match=f"There is no database '{path}'"):
            load_study(url)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file::memory:?uri=true"]
)
def test_a_database_in_memory_has_no_study(url: str) -> None:
    with pytest.raises(ValueError, match="is no database of Optuna"):
        load_study(url)


def test_a_missing_driver_is_named() -> None:
    try:
        import MySQLdb  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match=r"driver of the database .*MySQLdb"):
            load_study("mysql://user:word@localhost/studies")

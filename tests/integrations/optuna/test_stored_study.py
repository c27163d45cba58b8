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

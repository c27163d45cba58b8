"""Loading a study from a storage that stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

if TYPE_CHECKING:
    from sqlalchemy import Engine

_TABLES = frozenset({"studies", "trials", "version_info", "alembic_version"})
"""Tables by which a database of Optuna is recognised: the last one is what Optuna creates last."""


def load_study(storage: str, name: str | None = None) -> optuna.Study:
    """Load a study. Nothing is written to the storage, whatever it is.

    Parameters
    ----------
    storage : str
        URL of a storage, such as ``sqlite:///studies.db``, or the path of a journal file.
    name : str or None, default=None
        Name of the study; None is the only study of the storage.

    Returns
    -------
    optuna.Study
        The study.

    Raises
    ------
    ImportError
        If the driver of a database is not installed.
    ValueError
        If there is no such storage or study, it cannot be read, it is not one of Optuna, or there
        is no name and several studies.
    """
    opened = _opened_database(storage) if "://" in storage else _opened_journal(storage)
    try:
        names = sorted(optuna.get_all_study_names(opened))
    except Exception as error:
        raise _unreadable(error) from error
    if not names:
        raise ValueError("The storage has no study.")
    if name is None and len(names) == 1:
        (name,) = names
    if name is None:
        raise ValueError(f"The name of a study is needed; the storage has {names}.")
    if name not in names:
        raise ValueError(f"There is no study {name!r}; the storage has {names}.")
    return optuna.load_study(study_name=name, storage=opened)


def _opened_journal(path: str) -> BaseStorage:
    """Return the storage of a journal file; raise a ValueError if it is none."""
    if not Path(path).is_file():
        raise ValueError(
            f"There is no journal file {path!r}. A database needs its URL, "
            "such as sqlite:///studies.db."
        )
    try:
        backend = JournalFileBackend(path)
        # The reader of journals skips a last line that is incomplete.
        if Path(path).stat().st_size > 0 and "op_code" not in next(backend.read_logs(0), {}):
            raise ValueError("the first line is no record")
    # A file of another kind may raise anything in the reader of journals.
    except Exception as error:
        raise ValueError(
            f"{path!r} is no journal file of Optuna ({error}). A database needs its URL, "
            "such as sqlite:///studies.db."
        ) from None
    try:
        return JournalStorage(backend)
    except Exception as error:
        raise ValueError(f"The journal {path!r} has a line that cannot be read: {error}") from None


def _opened_database(url: str) -> BaseStorage:
    """Return the storage of a database of Optuna; raise a ValueError if it is none.

    Optuna itself would create a database that is missing, and its tables in any other one.
    """
    # Loaded here: Optuna itself loads it only for databases.
    import sqlalchemy

    try:
        filled = sqlalchemy.make_url(RDBStorage._fill_storage_url_template(url))
        engine = sqlalchemy.create_engine(filled)
    except ImportError as error:
        raise ImportError(f"The driver of the database is not installed: {error}") from error
    except Exception as error:
        raise _unreadable(error) from error
    shown = filled.render_as_string(hide_password=True)
    if filled.get_backend_name() == "sqlite":
        file = _sqlite_file(engine)
        if file is not None:
            shown = file
            # SQLite would create it.
            if not Path(file).is_file():
                raise ValueError(f"There is no database {file!r}.")
    try:
        missing = sorted(_TABLES.difference(sqlalchemy.inspect(engine).get_table_names()))
        if not missing:
            return RDBStorage(url, skip_table_creation=True)
    except Exception as error:
        raise _unreadable(error) from error
    finally:
        engine.dispose()
    raise ValueError(f"{shown!r} is no database of Optuna: it lacks the tables {missing}.")


def _sqlite_file(engine: Engine) -> str | None:
    """Return the path of the file that an engine of SQLite opens; None for a database in memory."""
    (opened, *_), options = engine.dialect.create_connect_args(engine.url)
    path, query = str(opened), {}
    if options.get("uri"):
        parts = urlsplit(path)
        path, query = unquote(parts.path), parse_qs(parts.query)
    is_in_memory = path in ("", ":memory:") or query.get("mode") == ["memory"]
    return None if is_in_memory else path


def _unreadable(error: Exception) -> ValueError:
    """Return the error of a storage that cannot be read.

    One of another kind, version or place may raise anything in Optuna and SQLAlchemy.
    """
    reason = (str(error).splitlines() or [repr(error)])[0]
    return ValueError(f"The storage cannot be read: {reason}")

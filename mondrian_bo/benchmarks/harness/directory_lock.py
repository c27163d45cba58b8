"""Lets one process at a time write runs to a directory of results."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["only_writer"]


@contextmanager
def only_writer(directory: Path) -> Iterator[None]:
    """Refuse to run the block if another process runs one for the same directory.

    The operating system releases the lock when the process ends, even if it is killed.

    Parameters
    ----------
    directory : Path
        Directory of results. It is made if it does not exist.

    Raises
    ------
    ValueError
        If another process holds the lock.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"another process writes runs to {directory}: wait until it ends or choose another "
                "directory"
            ) from None
        yield

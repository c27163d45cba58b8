"""The file format of a saved optimizer: arrays and JSON, checked before anything is used."""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.version import __version__

FORMAT = "mondrian-bo optimizer"
"""What a file says it is."""

VERSION = (1, 7)
"""Version of the format. The first number changes where a former reader would go wrong, the second
where something is added that a former reader may pass over."""

_HEADER, _CHECKSUM = "header", "checksum"
"""Names of the two members that are bytes; all others are float64 arrays."""


class _Foreign(Exception):
    """An archive has no header."""


def write_file(path: str | Path, content: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a file, which replaces a former one at once when it is complete.

    The file is a zip archive as ``numpy.savez`` writes it, without compression. Its members are
    ``header`` (JSON in UTF-8: ``format``, ``version``, ``written_by`` and `content`), `arrays`, and
    ``checksum`` (SHA-256 of names, shapes and bytes of all other members). The checksum finds
    accidents, and is no signature.

    Parameters
    ----------
    path : str or Path
        Where to write.
    content : mapping
        What JSON can hold.
    arrays : mapping of str to float64 arrays
        The arrays.

    Raises
    ------
    TypeError
        If `path` is no path.
    OSError
        If the file cannot be written; the message names `path`. A former one is unchanged then.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"`path` must be a string or a path, got {path!r}.")
    header = {
        "format": FORMAT,
        "version": list(VERSION),
        "written_by": __version__,
        **content,
    }
    encoded = json.dumps(header, allow_nan=False).encode()
    members: dict[str, NDArray[Any]] = {_HEADER: np.frombuffer(encoded, dtype=np.uint8)}
    for name, array in arrays.items():
        members[name] = np.ascontiguousarray(array, dtype="<f8")
    members[_CHECKSUM] = _checksum(members)
    buffer = io.BytesIO()
    np.savez(buffer, **members)  # type: ignore[arg-type]
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be saved: there is no folder {target.parent}.")
    if target.is_dir():
        raise IsADirectoryError(f"{path} cannot be saved: it is a folder.")
    try:
        _replace(target, buffer.getbuffer())
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def read_file(path: str | Path) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Read what `write_file` wrote; nothing in the file is executed.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    content : dict
        The header.
    arrays : dict of str to float64 arrays
        The arrays.

    Raises
    ------
    ValueError
        If the file is truncated, altered, of another kind, or of a later version of the format.
        The message has the name of the file and the reason.
    OSError
        If it cannot be read.
    """
    data = Path(path).read_bytes()
    if data[:1] == b"\x80":
        refuse(path, "it is a pickle, which could execute code. Save the optimizer again")
    if not data.startswith(b"PK\x03\x04"):
        refuse(path, "MondrianOptimizer.save did not write it")
    try:
        members = _members(data)
    except _Foreign:
        refuse(path, "it is an archive that MondrianOptimizer.save did not write")
    # Damaged bytes may raise anything in the readers of zip archives and of arrays.
    except Exception as error:
        refuse(path, f"it is truncated or altered ({error})")
    try:
        header = json.loads(members[_HEADER].tobytes())
        if header["format"] != FORMAT:
            raise ValueError
        major, minor = (int(number) for number in header["version"])
        written_by = str(header["written_by"])
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError):
        refuse(path, "it is an archive that MondrianOptimizer.save did not write, or altered")
    if major > VERSION[0]:
        refuse(
            path,
            f"it has version {major}.{minor} of the format, written by mondrian-bo {written_by}; "
            f"this is mondrian-bo {__version__}, which reads versions up to "
            f"{VERSION[0]}. Install a later mondrian-bo",
        )
    checksum = members.pop(_CHECKSUM, None)
    if checksum is None or not np.array_equal(checksum, _checksum(members)):
        refuse(path, "it is altered: its checksum is wrong")
    del members[_HEADER]
    return header, {name: np.asarray(one, dtype=np.float64) for name, one in members.items()}


def refuse(path: str | Path, reason: str) -> NoReturn:
    """Raise the error of a file that cannot be loaded."""
    raise ValueError(f"{path} cannot be loaded: {reason}.") from None


def _replace(target: Path, data: memoryview) -> None:
    """Write a second file, and give it the name of the first when it is complete."""
    # In the same folder, so that it can be renamed. Threads and machines may write at once.
    # The new name is short: that of the target may be as long as the file system allows.
    new = target.with_name(f".{secrets.token_hex(8)}.new")
    try:
        new.write_bytes(data)
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


def _members(data: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive.

    Raises
    ------
    _Foreign
        If another program wrote it.
    Exception
        If it is damaged.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if f"{_HEADER}.npy" not in archive.namelist():
            raise _Foreign
        for info in archive.infolist():
            # A small file must not become a large one in memory.
            if info.compress_type != zipfile.ZIP_STORED or info.file_size > len(data):
                raise ValueError(f"{info.filename} is compressed")
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        members = {name: arrays[name] for name in arrays.files}
    for name, one in members.items():
        expected = np.dtype(np.uint8 if name in (_HEADER, _CHECKSUM) else "<f8")
        if not isinstance(one, np.ndarray) or one.dtype != expected:
            raise ValueError(f"{name} is no array of {expected}")
    return members


def _checksum(members: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    digest = hashlib.sha256()
    for name in sorted(members):
        digest.update(f"{name} {members[name].shape} ".encode())
        digest.update(members[name].tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)

"""Files of compiled code, one for each signature of a function."""

from __future__ import annotations

import pickle
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4

from numba import __version__ as numba_version
from numba import config
from numba.core.serialize import dumps

_DIGEST_SIZE = sha256().digest_size
"""Number of bytes of the digest at the end of a file. Versions without a digest find their stamp at
the beginning."""


class SignatureFiles:
    """Stores the compiled code of one function: one file for each signature.

    Numba keeps an index of the signatures apart from their code. Two processes that compile
    different signatures at the same time give both the same file, so that the index then leads to
    code for other types. Here a file holds both the signature and its code, its name follows from
    the signature, and it replaces an older one in one step. A digest of the content shows damage.

    Numba takes code to be up to date while the function's own source file is. The code also holds
    the functions that it calls, so here the sources of all compiled functions of the package count.

    Parameters
    ----------
    folder : str
        Where the files are.
    base : str
        The beginning of their names, which tells the function.
    stamp : str
        Code that was stored with another stamp is out of date.
    """

    def __init__(self, folder: str, base: str, stamp: str) -> None:
        self._folder, self._base, self._stamp = Path(folder), base, stamp

    def save(self, key: Any, data: Any) -> None:
        """Store the code of a signature."""
        path = self._path(key)
        temporary = path.with_name(f"{path.name}.tmp.{uuid4().hex[:16]}")
        content = pickle.dumps(self._stamp) + dumps(key) + dumps(data)  # type: ignore[no-untyped-call]
        try:
            temporary.write_bytes(content + sha256(content).digest())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def load(self, key: Any) -> Any:
        """Return the code of a signature; None if there is none that is up to date."""
        try:
            content = self._path(key).read_bytes()
        except OSError:
            return None
        file, end = BytesIO(content), len(content) - _DIGEST_SIZE
        # Damaged code might crash the process. It counts as absent: the function is compiled again.
        if end <= 0 or sha256(memoryview(content)[:end]).digest() != content[end:]:
            return None
        if pickle.load(file) == self._stamp and pickle.load(file) == key:
            return pickle.load(file)
        return None

    def flush(self) -> None:
        """Remove all stored code of the function."""
        for path in self._folder.glob(f"{self._base}.*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, key: Any) -> Path:
        # Versions of numba, and code with bounds checks, have files of their own.
        kind = (numba_version, config.BOUNDSCHECK, key)  # type: ignore[attr-defined]
        return self._folder / f"{self._base}.{sha256(repr(kind).encode()).hexdigest()[:16]}.nbc"


@lru_cache(maxsize=1)
def package_stamp() -> str:
    """Return a digest of the sources of all compiled functions of this package."""
    digest = sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        source = path.read_bytes()
        if b"njit" in source:
            digest.update(source)
    return digest.hexdigest()

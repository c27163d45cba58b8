"""Where compiled code is stored, what happens if it cannot be, and how it loads."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from mondrian_bo.shared.garbage_collection import without_collections

_CACHING = "numba.core.caching"
"""The module of numba that stores compiled code."""


def ensure_cache_folder() -> None:
    """Let numba keep compiled code in a temporary folder if it could not keep it at all.

    Numba writes next to the sources or below the user's home, and refuses functions whose compiled
    code it can write nowhere. A warning names the folder. ``NUMBA_CACHE_DIR``, if it is set, has
    precedence. A few system calls and no import of numba.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    usual = (Path(__file__).parent / "__pycache__", Path(caches).expanduser() / "numba")
    if any(_can_be_written(folder) for folder in usual):
        return
    # Loaded here: this is rare.
    from tempfile import gettempdir

    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    folder = Path(gettempdir()) / f"mondrian-bo-{user}"
    try:
        # Code of other users must not be run.
        folder.mkdir(mode=0o700, exist_ok=True)
        is_own = not hasattr(os, "getuid") or folder.stat().st_uid == user
    except OSError:
        is_own = False
    if not is_own:
        return
    warnings.warn(
        f"Compiled code is kept in {folder}, because neither the installation nor the home folder "
        "can be written. Set NUMBA_CACHE_DIR to a folder that lasts.",
        RuntimeWarning,
        stacklevel=2,
    )
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    if "numba" in sys.modules:
        # Numba reads the environment once, unless it is told to.
        sys.modules["numba"].config.reload_config()


def _can_be_written(folder: Path) -> bool:
    """Return whether a folder can be written, or made."""
    for existing in (folder, *folder.parents):
        if existing.exists():
            return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    return False


def adapt_storage() -> None:
    """Let functions of this package load fast and safely, and run where no code can be stored.

    Their compiled code is kept in `SignatureFiles`, and loads while the garbage collector waits.
    Where numba would raise the OSError of a full disk out of the call of the function, a warning
    takes its place. Other packages' functions are not affected. Numba is not imported.
    """
    if _CACHING in sys.modules:
        _adapt(sys.modules[_CACHING])
    elif not any(isinstance(finder, _CachingFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _CachingFinder())


class _CachingFinder(MetaPathFinder):
    """Finds numba's module when it is imported, and changes it once it is loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of that module; None for all others."""
        if fullname != _CACHING:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_change(module: ModuleType) -> None:
            load(module)
            _adapt(module)

        spec.loader.exec_module = load_and_change  # type: ignore[method-assign]
        return spec


def _adapt(caching: Any) -> None:
    begin = caching.Cache.__init__
    save, load = caching.Cache.save_overload, caching.Cache.load_overload
    if getattr(save, "is_adapted", False):
        return

    def is_ours(cache: Any) -> bool:
        return bool(cache._py_func.__module__.partition(".")[0] == __package__)

    @wraps(begin)
    def begin_with_own_files(self: Any, py_func: Any) -> None:
        begin(self, py_func)
        if is_ours(self):
            # Loaded here: it needs numba.
            from mondrian_bo.signature_files import SignatureFiles, package_stamp

            base = self._impl.filename_base
            self._cache_file = SignatureFiles(self._cache_path, base, package_stamp())

    @wraps(save)
    def save_or_warn(self: Any, sig: Any, data: Any) -> None:
        try:
            save(self, sig, data)
        except OSError as error:
            if not is_ours(self):
                raise
            warnings.warn(
                f"Compiled code cannot be stored in {self.cache_path}: {error}. This process goes "
                "on, and the next one compiles again. Free space on the disk, or set "
                "NUMBA_CACHE_DIR to a folder of another one.",
                RuntimeWarning,
                stacklevel=2,
            )

    @wraps(load)
    def load_quickly(self: Any, sig: Any, target_context: Any) -> Any:
        if not is_ours(self):
            return load(self, sig, target_context)
        with without_collections():
            return load(self, sig, target_context)

    save_or_warn.is_adapted = True  # type: ignore[attr-defined]
    caching.Cache.__init__ = begin_with_own_files
    caching.Cache.save_overload = save_or_warn
    caching.Cache.load_overload = load_quickly

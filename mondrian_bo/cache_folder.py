"""A folder for compiled code where neither the installation nor the home can be written."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path


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

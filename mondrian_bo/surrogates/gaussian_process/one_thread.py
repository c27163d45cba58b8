"""Linear algebra on one thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import scipy.linalg  # noqa: F401  (so that its library is there to be told)
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_lock = threading.Lock()
_limits: list[Any] = []
"""The limit in force, once for each block inside of it."""


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # Finding the libraries takes a thousand times as long as telling them.
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let linear algebra run on one thread for the time of a ``with`` block.

    On matrices of a few hundred rows more threads cost more than they gain, and a great deal on a
    machine that has other things to do. Blocks may overlap, on several threads of Python.
    """
    with _lock:
        limit = _limits[0] if _limits else _controller().limit(limits=1, user_api="blas")
        _limits.append(limit)
    try:
        yield
    finally:
        with _lock:
            _limits.pop()
            if not _limits:
                limit.restore_original_limits()

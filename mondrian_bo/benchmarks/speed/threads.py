"""One thread for whatever is measured, here and in processes of its own."""

from __future__ import annotations

import os

__all__ = ["one_thread_environment"]

_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def one_thread_environment(**changes: str) -> dict[str, str]:
    """Return the environment of a process that is to use one thread.

    Parameters
    ----------
    **changes : str
        Further variables.
    """
    return {**os.environ, **dict.fromkeys(_LIMITS, "1"), **changes}

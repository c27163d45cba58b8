"""Environments that limit a process to one thread."""

from __future__ import annotations

import os

__all__ = ["THREAD_VARIABLES", "one_thread_environment"]

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
"""Variables that OpenMP, OpenBLAS, MKL and numba read when they are loaded."""


def one_thread_environment(**changes: str) -> dict[str, str]:
    """Return the present environment with one thread for numerical libraries.

    Parameters
    ----------
    **changes : str
        Further variables to set.

    Returns
    -------
    dict of str to str
        The variables.
    """
    return {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1"), **changes}

"""Limits of one thread, for this process and for others."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager

__all__ = ["THREAD_VARIABLES", "one_thread", "one_thread_environment"]

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


def one_thread() -> AbstractContextManager[object]:
    """Limit the numerical libraries of this process to one thread, inside a ``with`` block.

    A limit holds only for libraries that are loaded, and scipy has a BLAS library of its own.
    """
    import scipy.linalg  # noqa: F401
    import sklearn.utils  # noqa: F401
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    return threadpool_limits(1)  # type: ignore[no-any-return]

"""Measures river's AMFRegressor in a process with its own Python environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from mondrian_bo.benchmarks.harness.threads import one_thread_environment
from mondrian_bo.benchmarks.suites.speed.clock import Cost
from mondrian_bo.benchmarks.suites.streams import river_worker
from mondrian_bo.shared.array_types import AnyArray

__all__ = ["PUBLISHED", "PYTHON_VARIABLE", "find_river", "learn"]

PUBLISHED = {5: 820.0, 20: 450.0}
"""Published speed: samples per second, learnt one by one, by number of features."""

PYTHON_VARIABLE = "MONDRIAN_BO_RIVER_PYTHON"
"""Environment variable that names river's interpreter if no option does."""


def find_river(named: Path | None) -> Path | None:
    """Return the interpreter that has river, or None.

    Parameters
    ----------
    named : Path or None
        The interpreter from the command line. If None, the environment variable `PYTHON_VARIABLE`
        names it; else it is this interpreter if river is installed.

    Returns
    -------
    Path or None
        The interpreter; None if there is none.
    """
    if named is None and (variable := os.environ.get(PYTHON_VARIABLE)):
        named = Path(variable)
    if named is None and find_spec("river") is not None:
        named = Path(sys.executable)
    return named


def learn(python: Path, X: AnyArray, y: AnyArray) -> Cost:
    """Measure a new forest of 10 trees that learns samples one by one in a new process.

    Parameters
    ----------
    python : Path
        An interpreter that can import river.
    X : array of shape (n, d)
        Inputs.
    y : array of shape (n,)
        Targets.

    Returns
    -------
    Cost
        The time of learning.

    Raises
    ------
    ValueError
        If the interpreter does not run or cannot import river.
    """
    with TemporaryDirectory() as directory:
        path = Path(directory) / "samples.npz"
        np.savez(path, X=X, y=y)
        try:
            answer = subprocess.run(
                [str(python), river_worker.__file__, str(path)],
                env=one_thread_environment(),
                capture_output=True,
                text=True,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError) as error:
            reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
            raise ValueError(f"{python} cannot run river's AMFRegressor: {reason}") from error
    return Cost(**json.loads(answer.stdout))

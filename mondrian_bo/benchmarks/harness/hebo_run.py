"""HEBO's ask-and-tell loop: problems run in a process with its own Python environment.

A. I. Cowen-Rivers et al. HEBO: Pushing the Limits of Sample-Efficient Hyper-parameter Optimisation.
Journal of Artificial Intelligence Research 74:1269-1349, 2022. PyPI package ``hebo``.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mondrian_bo.benchmarks.harness import hebo_worker
from mondrian_bo.benchmarks.worker_process import shared_worker
from mondrian_bo.search_space import Categorical, Float, SearchSpace

__all__ = ["PYTHON_VARIABLE", "HeboRun", "design_space"]

PYTHON_VARIABLE = "MONDRIAN_BO_HEBO_PYTHON"
"""Environment variable that names HEBO's interpreter."""

_PURPOSE = "run HEBO; see `python -m mondrian_bo.benchmarks.make_environment --help`"
"""What the environment is for, in the message that says that there is none."""


class HeboRun:
    """One run of HEBO, which is asked for trials of a problem and told their values.

    Parameters
    ----------
    space : SearchSpace
        The problem's parameters.
    python : Path
        An interpreter that can import HEBO. Runs of one process share a worker, one after another.
    seed : int
        Seed of the run.
    batch : int, default=1
        Number of suggestions that HEBO makes at once.

    Raises
    ------
    ValueError
        If the space has conditional parameters or steps, or the interpreter cannot run HEBO.
    """

    def __init__(self, space: SearchSpace, python: Path, seed: int, batch: int = 1) -> None:
        parameters = list(design_space(space))
        self._worker = shared_worker(python, hebo_worker.__file__, _PURPOSE)
        self._worker.ask("start", parameters=parameters, seed=seed)
        self._space = space
        self._batch = batch
        self._suggestions: deque[dict[str, Any]] = deque()

    def ask(self) -> tuple[dict[str, Any], float]:
        """Return the next parameters and the seconds they took; the first trial has number 0."""
        started = time.perf_counter()
        if not self._suggestions:
            self._suggestions.extend(self._worker.ask("suggest", n=self._batch))
        params = self._suggestions.popleft()
        for name, parameter in self._space.items():
            # The logarithm of a bound, raised to a power again, may lie outside by rounding.
            if isinstance(parameter, Float):
                params[name] = min(max(params[name], parameter.low), parameter.high)
        return params, time.perf_counter() - started

    def tell(self, number: int, value: float) -> float:
        """Report the value of a trial; return the seconds it took."""
        started = time.perf_counter()
        self._worker.ask("observe", number=number, value=value)
        return time.perf_counter() - started


def design_space(space: SearchSpace) -> Iterator[dict[str, Any]]:
    """Yield the parameters of a space as HEBO's design space parses them.

    Parameters
    ----------
    space : SearchSpace
        The parameters.

    Yields
    ------
    dict
        Name, type and bounds or categories.

    Raises
    ------
    ValueError
        If a parameter is conditional or has a step.
    """
    for name, parameter in space.items():
        if parameter.condition is not None:
            raise ValueError("HEBO takes no conditional parameters")
        if isinstance(parameter, Categorical):
            choices = list(parameter.choices)
            if set(choices) == {False, True} and all(isinstance(one, bool) for one in choices):
                yield {"name": name, "type": "bool"}
            else:
                yield {"name": name, "type": "cat", "categories": choices}
            continue
        is_float = isinstance(parameter, Float)
        if parameter.step is not None and (is_float or parameter.step != 1):
            raise ValueError("HEBO is not run on parameters with steps")
        kind = ("pow" if is_float else "pow_int") if parameter.log else "num" if is_float else "int"
        yield {"name": name, "type": kind, "lb": parameter.low, "ub": parameter.high}

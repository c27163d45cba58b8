"""Special suites, which have programs of their own instead of samplers and problems."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from typing import cast

__all__ = ["SPECIAL_SUITES", "special_suite"]

SPECIAL_SUITES: dict[str, str] = {
    "ax": "mondrian_bo.benchmarks.suites.ax_overhead:run",
    "curves": "mondrian_bo.benchmarks.curves.suite:run",
    "fidelities": "mondrian_bo.benchmarks.suites.fidelities:run",
    "flights": "mondrian_bo.benchmarks.suites.flights:run",
    "importance": "mondrian_bo.benchmarks.suites.importance:run",
    "large-stream": "mondrian_bo.benchmarks.suites.large_stream:run",
    "outcomes": "mondrian_bo.benchmarks.speed.several_outcomes:run",
    "replicates": "mondrian_bo.benchmarks.suites.replicates:run",
    "robust": "mondrian_bo.benchmarks.suites.robust:run",
    "robust_noisy": "mondrian_bo.benchmarks.suites.robust_noisy:run",
    "speed": "mondrian_bo.benchmarks.speed.suite:run",
    "stopping": "mondrian_bo.benchmarks.suites.stopping:run",
    "stopping_bbob": "mondrian_bo.benchmarks.suites.stopping:run_bbob",
    "suggestions": "mondrian_bo.benchmarks.speed.studies:run",
    "streams": "mondrian_bo.benchmarks.streams.suite:run",
    "table3": "mondrian_bo.benchmarks.suites.table3:run",
    "wide": "mondrian_bo.benchmarks.speed.wide_spaces:run",
    "warm_starts": "mondrian_bo.benchmarks.suites.warm_starts:run",
}
"""``module:function`` by name of the suite; imported on use, so that listing them is fast."""


def special_suite(name: str) -> Callable[[Namespace], None]:
    """Import the program of a special suite.

    Parameters
    ----------
    name : str
        A key of `SPECIAL_SUITES`.

    Returns
    -------
    callable
        Takes the parsed arguments of ``mondrian-bo bench run``.
    """
    module, function = SPECIAL_SUITES[name].split(":")
    return cast(Callable[[Namespace], None], getattr(import_module(module), function))

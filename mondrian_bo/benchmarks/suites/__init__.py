"""Special suites, which have programs of their own instead of samplers and problems.

`SPECIAL_SUITES` names the program of each suite: a module of this package, or a package where a
suite needs several modules.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple, cast

__all__ = ["SPECIAL_SUITES", "special_suite"]

_ARCHIVED = ("seeds", "jobs", "trials", "known")
"""Options of suites whose runs are kept in an archive."""


class _Suite(NamedTuple):
    """A special suite.

    Attributes
    ----------
    program : str
        Its function, as ``module:function`` of this package; imported on use, so that listing
        suites is fast.
    options : tuple of str
        Options of ``mondrian-bo bench run`` that the function takes besides ``--out``.
    fewest_trials, fewest_seeds : int
        Smallest numbers from which its tables can be made.
    """

    program: str
    options: tuple[str, ...] = ()
    fewest_trials: int = 1
    fewest_seeds: int = 1


SPECIAL_SUITES: dict[str, _Suite] = {
    "ax": _Suite("ax:run"),
    "curves": _Suite("curves.suite:run", ("half", "samplers", "seeds", "jobs", "known")),
    "fidelities": _Suite("fidelities:run", ("half", *_ARCHIVED)),
    "flights": _Suite("flights:run", ("seeds",)),
    "importance": _Suite("importance:run", ("seeds", "trials")),
    "large-stream": _Suite("large_stream:run", ("trials",)),
    "outcomes": _Suite("outcomes:run", ("trials",)),
    "replicates": _Suite("replicates:run", ("seeds", "jobs", "trials"), fewest_seeds=2),
    "robust": _Suite("robust:run", ("seeds", "jobs", "trials")),
    "robust_noisy": _Suite("robust_noisy:run", ("seeds", "jobs", "trials")),
    "speed": _Suite("speed.suite:run", ("onelearn_python",)),
    "stopping": _Suite("stopping:run", _ARCHIVED, fewest_trials=20),
    "stopping_bbob": _Suite("stopping:run_bbob", _ARCHIVED, fewest_trials=20),
    "suggestions": _Suite("suggestions:run", ("trials",)),
    "streams": _Suite(
        "streams.suite:run", ("seeds", "jobs", "trials", "onelearn_python", "river_python")
    ),
    "table3": _Suite("table3:run", ("seeds", "jobs", "tables")),
    "wide": _Suite("wide:run", ("trials",)),
    "warm_starts": _Suite("warm_starts:run", _ARCHIVED, fewest_trials=20),
}
"""Special suites by name."""


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
    module, function = SPECIAL_SUITES[name].program.split(":")
    program = getattr(import_module(f"{__name__}.{module}"), function)
    return cast(Callable[[Namespace], None], program)

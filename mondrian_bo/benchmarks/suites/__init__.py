"""Special suites, which have programs of their own instead of samplers and problems.

`SPECIAL_SUITES` names the program of each suite: a module of this package, or a package where a
suite needs several modules.
"""

from __future__ import annotations

import ast
from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, cast

__all__ = ["SPECIAL_SUITES", "special_suite", "suite_summary"]

_ARCHIVED = ("seeds", "jobs", "trials", "known")
"""Options of suites whose runs are kept in an archive."""


class _SpecialSuite(NamedTuple):
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


SPECIAL_SUITES: dict[str, _SpecialSuite] = {
    "ax": _SpecialSuite("ax:run"),
    "curves": _SpecialSuite("curves.suite:run", ("half", "samplers", "seeds", "jobs", "known")),
    "fidelities": _SpecialSuite("fidelities:run", ("half", *_ARCHIVED)),
    "flights": _SpecialSuite("flights:run", ("seeds",)),
    "importance": _SpecialSuite("importance:run", ("seeds", "trials")),
    "large-stream": _SpecialSuite("large_stream:run", ("trials",)),
    "outcomes": _SpecialSuite("outcome_costs:run", ("trials",)),
    "replicates": _SpecialSuite("replicates:run", ("seeds", "jobs", "trials"), fewest_seeds=2),
    "robust": _SpecialSuite("robust:run", ("seeds", "jobs", "trials")),
    "robust_noisy": _SpecialSuite("robust_noisy:run", ("seeds", "jobs", "trials")),
    "speed": _SpecialSuite("speed.suite:run", ("onelearn_python",)),
    "stopping": _SpecialSuite("stopping:run", _ARCHIVED, fewest_trials=20),
    "stopping_bbob": _SpecialSuite("stopping:run_bbob", _ARCHIVED, fewest_trials=20),
    "suggestions": _SpecialSuite("suggestions:run", ("trials",)),
    "streams": _SpecialSuite(
        "streams.suite:run", ("seeds", "jobs", "trials", "onelearn_python", "river_python")
    ),
    "table3": _SpecialSuite("table3:run", ("seeds", "jobs", "tables")),
    "wide": _SpecialSuite("wide:run", ("trials",)),
    "warm_starts": _SpecialSuite("warm_starts:run", _ARCHIVED, fewest_trials=20),
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


def suite_summary(name: str) -> str:
    """Return the first line of the docstring of a special suite's module, which is not imported.

    Parameters
    ----------
    name : str
        A key of `SPECIAL_SUITES`.
    """
    module, _ = SPECIAL_SUITES[name].program.split(":")
    path = Path(__file__).parent.joinpath(*module.split(".")).with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]

"""Count the project's files and functions that one suggestion of MondrianSampler passes.

    python tools/trace_suggestion.py [--trial 60] [--list]

A study of five parameters (three real ones, a real one on a logarithmic scale, an integer) runs to
the given trial with the sampler's defaults. The suggestion for that trial is then profiled: the
hooks ``infer_relative_search_space`` and ``sample_relative``, which read the last finished trial,
learn it and choose the next point. The hooks of a trial's start and end are Optuna's own.

Counted are the different functions of ``mondrian_bo`` that are called from Python: methods, nested
functions, lambdas and the entry points of compiled (numba) code, each once. Comprehensions and
generator expressions do not count: whether they are functions depends on the version of Python.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import optuna

import mondrian_bo
from mondrian_bo import MondrianSampler

PACKAGE = Path(mondrian_bo.__file__).resolve().parent
"""Directory of the package, whose files and functions are counted."""

SPACE: dict[str, optuna.distributions.BaseDistribution] = {
    "a": optuna.distributions.FloatDistribution(-5.0, 10.0),
    "b": optuna.distributions.FloatDistribution(0.0, 15.0),
    "c": optuna.distributions.FloatDistribution(0.0, 1.0),
    "rate": optuna.distributions.FloatDistribution(1e-4, 1.0, log=True),
    "depth": optuna.distributions.IntDistribution(1, 9),
}
"""The search space of the traced study."""


def objective(params: dict[str, Any]) -> float:
    """Return a smooth function with its minimum inside of the space."""
    return float(
        (params["a"] - 3.0) ** 2 / 10.0
        + (params["b"] - 2.0) ** 2 / 20.0
        + abs(params["c"] - 0.3)
        + (params["rate"] ** 0.25 - 0.5) ** 2
        + 0.1 * abs(params["depth"] - 4)
    )


def trace(n_trial: int = 60) -> set[CodeType]:
    """Return the code objects of the package that the suggestion for one trial executes.

    Parameters
    ----------
    n_trial : int, default=60
        Number of trials that are finished before it.
    """
    study = optuna.create_study(sampler=MondrianSampler(seed=0))
    for _ in range(n_trial):
        trial = study.ask(SPACE)
        study.tell(trial, objective(trial.params))

    executed: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            executed.add(frame.f_code)

    sys.setprofile(note)
    try:
        study.ask(SPACE)
    finally:
        sys.setprofile(None)
    return {code for code in executed if _is_ours(code)}


def by_file(codes: set[CodeType]) -> dict[str, list[str]]:
    """Return the names of functions by the file they are in, relative to the package."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    for code in codes:
        files[Path(code.co_filename).resolve().relative_to(PACKAGE).as_posix()].append(
            code.co_qualname
        )
    return {name: sorted(files[name]) for name in sorted(files)}


def _is_ours(code: CodeType) -> bool:
    # Modules that are loaded on first use are not part of a later suggestion.
    no_functions = ("<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
    return Path(code.co_filename).resolve().is_relative_to(PACKAGE) and (
        code.co_name not in no_functions
    )


def main() -> None:
    """Print the counts, and with --list every function."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trial", type=int, default=60, help="finished trials before it")
    parser.add_argument("--list", action="store_true", help="print every function")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    files = by_file(trace(arguments.trial))
    for name, functions in files.items():
        print(f"{name}: {len(functions)}")
        if arguments.list:
            print(*(f"    {function}" for function in functions), sep="\n")
    print(f"{len(files)} files, {sum(map(len, files.values()))} functions")


if __name__ == "__main__":
    main()

"""Runs of examples and of code from pages, in the process of the tests.

A process of its own for each would spend most of its time on imports and on loading compiled code.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib
import matplotlib.pyplot as plt
import optuna
from threadpoolctl import threadpool_limits

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def run_example(script: Path | str, *arguments: str, cwd: Path) -> str:
    """Return what an example prints that runs with these arguments in a folder of its own.

    The arguments stand for those of the command line. A failing example raises as it does there:
    `SystemExit` if it ends with a message.
    """
    script = EXAMPLES / script
    with (
        _surroundings(cwd) as printed,
        mock.patch.object(sys, "argv", [str(script), *arguments]),
        mock.patch.object(sys, "path", [str(script.parent), *sys.path]),
    ):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise
    return printed.getvalue()


def names_of_example(script: Path, cwd: Path) -> dict[str, Any]:
    """Return what an example defines, by name; its main program does not run."""
    with _surroundings(cwd), mock.patch.object(sys, "path", [str(script.parent), *sys.path]):
        return runpy.run_path(str(script), run_name="example")


def run_code(code: str, cwd: Path) -> str:
    """Return what the code of a page prints that runs as a script in a folder of its own."""
    with _surroundings(cwd) as printed:
        exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})
    return printed.getvalue()


@contextlib.contextmanager
def _surroundings(cwd: Path) -> Iterator[io.StringIO]:
    """Yield the standard output of a script, and leave no trace of it in this process."""
    verbosity, loaded = optuna.logging.get_verbosity(), set(sys.modules)
    printed = io.StringIO()
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(printed),
        warnings.catch_warnings(),
        matplotlib.rc_context(),
        threadpool_limits(1, user_api="blas"),
    ):
        try:
            yield printed
        finally:
            plt.close("all")
            optuna.logging.set_verbosity(verbosity)
            # Folders of examples have helpers of the same name.
            for name in set(sys.modules) - loaded:
                path = vars(sys.modules[name]).get("__file__")
                if path is not None and Path(path).is_relative_to(EXAMPLES):
                    del sys.modules[name]

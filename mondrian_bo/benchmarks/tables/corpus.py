"""A text corpus in every Python installation: the docstrings of its standard library."""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

__all__ = ["standard_library_docstrings"]

_SKIPPED = frozenset(
    {"site-packages", "dist-packages", "test", "tests", "idlelib", "turtledemo", "lib-dynload"}
)
"""Directories that differ between installations of one Python version: third-party packages, tests,
and the GUI programs and lib-dynload that some distributions omit."""


def standard_library_docstrings() -> list[str]:
    """Collect the docstrings of modules, classes and functions, in the order of their files.

    Returns
    -------
    list of str
        One entry per docstring; the same list on every installation of one Python version.
    """
    root = Path(sysconfig.get_paths()["stdlib"])
    sources = [
        path
        for path in root.rglob("*.py")
        if _SKIPPED.isdisjoint(path.relative_to(root).parts)
        # Installers write these files; they are not part of the library.
        and not path.name.startswith("_sysconfigdata")
    ]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = []
    for path in sorted(sources, key=lambda p: p.relative_to(root).as_posix()):
        try:
            tree = ast.parse(path.read_bytes())
        except SyntaxError:  # lib2to3 has grammar samples of other Python versions
            continue
        for node in ast.walk(tree):
            if isinstance(node, documented) and (text := ast.get_docstring(node)):
                docstrings.append(text)
    return docstrings

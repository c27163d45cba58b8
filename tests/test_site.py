"""The site shows everything: every page is in its menu, every public name in its reference.

``make site`` builds it, and stops at warnings.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import mondrian_bo

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PACKAGE = Path(mondrian_bo.__file__).resolve().parent
FACES = (
    "mondrian_bo",
    "mondrian_bo.search_space",
    "mondrian_bo.optimizer",
    "mondrian_bo.importance",
    "mondrian_bo.acquisitions",
    "mondrian_bo.surrogates",
    "mondrian_bo.integrations.optuna",
    "mondrian_bo.integrations.ax",
    "mondrian_bo.integrations.river",
)
"""Packages whose names are public."""

ELSEWHERE = {
    "mondrian_bo": ("mondrian_bo.search_space",),
    "mondrian_bo.optimizer": ("mondrian_bo",),
    "mondrian_bo.integrations.optuna": ("mondrian_bo",),
}
"""Packages some of whose names the reference lists under another one, the same objects."""


def _toctrees(page: Path) -> list[str]:
    """Entries of the menus of a page."""
    blocks = re.findall(
        r"^\.\. toctree::\n((?:   .*\n|\n)*)", page.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith(":")]


def _documented() -> dict[str, set[str]]:
    """Names that the reference lists, by module."""
    found: dict[str, set[str]] = {}
    module = ""
    for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.rpartition(" ")[2]
        elif re.fullmatch(r"   \w+", line):
            found.setdefault(module, set()).add(line.strip())
    return found


def _public(face: str) -> set[str]:
    """Names of a package's `__all__`, which is read and not imported: Ax may be missing."""
    source = PACKAGE.parent.joinpath(*face.split("."), "__init__.py").read_text(encoding="utf-8")
    (names,) = [
        ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    return set(names) - {"__version__"}


def test_every_page_is_in_the_menu() -> None:
    pages = {
        page.relative_to(DOCS).with_suffix("").as_posix()
        for page in (*DOCS.rglob("*.md"), *DOCS.glob("*.rst"))
        if "generated" not in page.parts
    }
    entries = _toctrees(DOCS / "index.rst")
    assert len(entries) == len(set(entries))
    # README.md is the index on the code host, and index.rst that of the site.
    assert set(entries) == pages - {"README", "index"}


def test_every_example_is_in_the_menu() -> None:
    pages = {
        "generated/examples/"
        + "-".join(script.relative_to(ROOT / "examples").with_suffix("").parts)
        for script in (ROOT / "examples").rglob("[!_]*.py")
    }
    entries = _toctrees(DOCS / "examples.rst")
    shown = {page for page in pages if any(Path(page).match(entry) for entry in entries)}
    assert shown == pages
    assert [one for one in entries if not any(Path(page).match(one) for page in pages)] == []


@pytest.mark.parametrize("face", FACES)
def test_every_public_name_is_in_the_reference(face: str) -> None:
    documented = _documented()
    places = {face, *ELSEWHERE.get(face, ())}
    shown = set().union(*(documented.get(place, set()) for place in places))
    assert _public(face) - shown == set()


def test_the_reference_has_no_other_names() -> None:
    assert set(_documented()) <= set(FACES)
    for face, names in _documented().items():
        assert names - _public(face) == set()


def test_public_packages_are_those_with_names() -> None:
    """Packages inside of a public one, and the benchmarks, are not for import."""
    with_names = {
        ".".join(init.parent.relative_to(PACKAGE.parent).parts)
        for init in PACKAGE.rglob("__init__.py")
        if "__all__ = [" in init.read_text(encoding="utf-8")
    }
    assert {one for one in with_names if ".benchmarks." not in one} == set(FACES)

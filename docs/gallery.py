"""The examples on the site: a page for each, and a gallery of cards with picture and command.

A Sphinx extension. It shows the pictures of the documentation and runs no script: many examples
take minutes.
"""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
"""The scripts."""

IMAGES = Path(__file__).resolve().parent / "images"
"""The pictures of the documentation: that of a script has its folder and name."""

PAGES = "generated/examples"
"""Folder of the pages of examples, inside the documentation."""


class Example(NamedTuple):
    """A script, and what its docstring says."""

    page: str  # without suffix, as in a menu
    script: str  # in the folder of examples
    title: str
    text: str
    picture: str | None  # in the folder of the documentation


def read_examples() -> list[Example]:
    """Return the examples in the order of their names; modules that they share are left out."""
    found = []
    for script in sorted(EXAMPLES.rglob("[!_]*.py")):
        name = script.relative_to(EXAMPLES).with_suffix("")
        docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or name.name
        title, _, text = docstring.partition("\n")
        has_picture = (IMAGES / name.with_suffix(".png")).exists()
        found.append(
            Example(
                page=f"{PAGES}/{'-'.join(name.parts)}",
                script=f"{name.as_posix()}.py",
                title=title.rstrip("."),
                text=text,
                picture=f"/images/{name.as_posix()}.png" if has_picture else None,
            )
        )
    return found


def _page(example: Example) -> str:
    """Return the page of an example: what it does, its command, its picture, its code."""
    lines = [example.title, "=" * len(example.title), *_paragraphs(example.text)]
    lines += ["", "::", "", f"    python examples/{example.script}"]
    if example.picture:
        lines += ["", ".. container:: picture", "", f"   .. image:: {example.picture}"]
        lines += [f"      :alt: {example.title}"]
    lines += ["", f".. literalinclude:: ../../../examples/{example.script}", ""]
    return "\n".join(lines)


def _paragraphs(text: str) -> list[str]:
    """Return the lines of a docstring: indented blocks are code, whatever they hold."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        is_code = block.startswith("    ")
        lines += ["", *(["::", ""] if is_code else []), *block.splitlines()]
    return lines


def _cards(examples: list[Example]) -> str:
    """Return a grid of cards: picture, title, command; a click leads to the page."""
    lines = ["", ".. grid:: 1 2 2 2", "   :gutter: 3", "   :class-container: gallery", ""]
    for example in examples:
        lines += [f"   .. grid-item-card:: {example.title}", f"      :link: /{example.page}"]
        lines += ["      :link-type: doc"]
        if example.picture:
            lines += [f"      :img-top: {example.picture}", f"      :img-alt: {example.title}"]
        lines += ["", f"      ``python examples/{example.script}``", ""]
    return "\n".join(lines)


def _write_pages(app: Any) -> None:
    folder = Path(app.srcdir) / PAGES
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.rst"):
        stale.unlink()
    for example in read_examples():
        (Path(app.srcdir) / f"{example.page}.rst").write_text(_page(example), encoding="utf-8")


def _add_cards(app: Any, page: str, source: list[str]) -> None:
    """Put the cards of its examples below each menu of the page of examples."""
    if page != "examples":
        return
    examples = read_examples()

    def with_cards(match: re.Match[str]) -> str:
        entries = re.findall(rf"^   ({PAGES}/\S+)$", match[0], flags=re.MULTILINE)
        shown = [one for entry in entries for one in examples if fnmatch(one.page, entry)]
        # Cards of a row have one height: those with pictures come first.
        shown.sort(key=lambda one: one.picture is None)
        return match[0].rstrip() + "\n" + _cards(shown) + "\n"

    source[0] = re.sub(
        r"^\.\. toctree::\n(?:   .*\n|\n)+", with_cards, source[0], flags=re.MULTILINE
    )


def setup(app: Any) -> dict[str, bool]:
    """Register both; neither keeps anything between pages."""
    app.connect("builder-inited", _write_pages)
    app.connect("source-read", _add_cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

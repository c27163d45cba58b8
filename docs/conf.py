"""Sphinx configuration: ``make site`` builds these pages to site/. No warning is allowed."""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

import latex2mathml.converter
from docutils import nodes
from pygments.lexers.special import TextLexer

import mondrian_bo

ROOT = Path(__file__).resolve().parent.parent
"""The repository."""

SOURCE = "https://github.com/mondrian-bo/mondrian-bo"
"""Address of the repository, for links to files that are not pages."""

project = "mondrian-bo"
author = "The mondrian-bo developers"
copyright = f"2026, {author}"
version = release = mondrian_bo.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_design",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
# README.md is the index on the code host; index.rst is that of the site.
exclude_patterns = ["README.md", "_templates", "results"]
templates_path = ["_templates"]

myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Formulas become MathML, which browsers show without a script from elsewhere.
html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"mondrian-bo {release}"
html_static_path = ["_static"]
html_css_files = ["phone.css"]
html_show_sourcelink = False
html_copy_source = False


def _link_files(app: Any, page: str, source: list[str]) -> None:
    """Let links to files of the repository that are no pages point to the code host.

    The same Markdown is read there and here, so a link is relative to the page.
    """
    folder = posixpath.dirname(page)

    def repository_link(match: re.Match[str]) -> str:
        target, anchor = match["target"], match["anchor"] or ""
        if "://" in target or not target:
            return match[0]
        path = posixpath.normpath(posixpath.join("docs", folder, target))
        if path == "docs/README.md":
            return f"]({posixpath.relpath('index.rst', folder or '.')})"
        is_page = path.startswith("docs/") and path.endswith((".md", ".png", ".svg"))
        if is_page or not (ROOT / path).exists():
            return match[0]
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"]({SOURCE}/{kind}/main/{path}{anchor})"

    if app.env.doc2path(page).suffix == ".md":
        source[0] = re.sub(
            r"\]\((?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)", repository_link, source[0]
        )


def _skip_foreign(app: Any, kind: str, name: str, member: Any, skip: bool, options: Any) -> bool:
    """Leave out what a class inherits from other packages: their own pages have it."""
    home = getattr(member, "__module__", None) or project
    return skip or not home.startswith((mondrian_bo.__name__, project))


def _write_examples(app: Any) -> None:
    """Write a page for each example: what it says it does, its picture, its code."""
    folder = Path(app.srcdir) / "generated" / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.rst"):
        stale.unlink()
    for script in sorted((ROOT / "examples").rglob("[!_]*.py")):
        name = script.relative_to(ROOT / "examples").with_suffix("")
        docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or name.name
        title, _, text = docstring.partition("\n")
        lines = [title.rstrip("."), "=" * len(title), "", *_as_code(text)]
        picture = Path(app.srcdir) / "images" / name.with_suffix(".png")
        if picture.exists():
            image = f"   .. image:: /images/{name.as_posix()}.png"
            lines += ["", ".. container:: picture", "", image]
        lines += ["", f".. literalinclude:: ../../../examples/{name.as_posix()}.py", ""]
        page = folder / f"{'-'.join(name.parts)}.rst"
        page.write_text("\n".join(lines), encoding="utf-8")


def _as_code(text: str) -> list[str]:
    """Return the lines of a docstring: indented blocks are code, whatever they hold."""
    blocks = re.split(r"\n\s*\n", text.strip("\n"))
    lines: list[str] = []
    for block in blocks:
        is_code = block.startswith("    ")
        lines += ["", *(["::", ""] if is_code else []), *block.splitlines()]
    return lines


def _mark_claims(app: Any, doctree: Any) -> None:
    """Give the tables of the pages of papers a class: phone.css shows their rows as lists."""
    if app.env.docname.startswith("papers/"):
        for table in doctree.findall(nodes.table):
            table["classes"].append("claims")


def _write_formula(translator: Any, node: Any) -> None:
    """Write a formula as MathML."""
    is_block = node.tagname == "math_block"
    display = "block" if is_block else "inline"
    formula = latex2mathml.converter.convert(node.astext(), display=display)
    translator.body.append(f'<div class="formula">{formula}</div>' if is_block else formula)
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Register what is above, and the language of the block of layers in design.md."""
    app.connect("builder-inited", _write_examples)
    app.connect("autodoc-skip-member", _skip_foreign)
    app.connect("source-read", _link_files)
    app.connect("doctree-read", _mark_claims)
    renderers = (_write_formula, None)
    app.add_html_math_renderer("mathml", inline_renderers=renderers, block_renderers=renderers)
    app.add_lexer("layers", TextLexer)

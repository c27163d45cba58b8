"""Sphinx configuration: ``make site`` builds these pages to site/. No warning is allowed."""

from __future__ import annotations

import posixpath
import re
import sys
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

sys.path.insert(0, str(Path(__file__).resolve().parent))
extensions = [
    "gallery",  # of this folder
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
    app.connect("autodoc-skip-member", _skip_foreign)
    app.connect("source-read", _link_files)
    app.connect("doctree-read", _mark_claims)
    renderers = (_write_formula, None)
    app.add_html_math_renderer("mathml", inline_renderers=renderers, block_renderers=renderers)
    app.add_lexer("layers", TextLexer)

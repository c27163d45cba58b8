"""The documentation: links to files and headings that exist, and a site that shows everything."""

from __future__ import annotations

import ast
import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "mondrian_bo"
README = ROOT / "README.md"
PAGES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCE = PROJECT["urls"]["Source"]
RAW = SOURCE.replace("github.com", "raw.githubusercontent.com")


def _links(page: Path) -> list[str]:
    """Targets of links and pictures, outside of code."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.findall(r"\]\(([^)\s]+)\)", text)


def _anchors(page: Path) -> set[str]:
    """Anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.M)
    words = (re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", h).lower()) for h in headings)
    return {heading.strip().replace(" ", "-") for heading in words}


def _is_there(target: str, folder: Path) -> bool:
    path, _, anchor = target.partition("#")
    file = folder / path
    if not path:
        return False
    return file.exists() and (not anchor or anchor in _anchors(file))


def test_readme_links_are_absolute() -> None:
    links = _links(README)
    assert links
    assert [link for link in links if not link.startswith("https://")] == []


def test_readme_links_into_the_repository_exist() -> None:
    paths = [
        link.removeprefix(start)
        for link in _links(README)
        for start in (f"{SOURCE}/blob/main/", f"{SOURCE}/tree/main/", f"{RAW}/main/")
        if link.startswith(start)
    ]
    assert len(paths) > 10
    assert [path for path in paths if not _is_there(path, ROOT)] == []


def test_readme_pictures_are_raw_files() -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    assert pictures
    assert [link for link in pictures if not link.startswith(f"{RAW}/main/")] == []


def test_pictures_are_small() -> None:
    pictures = [*(ROOT / "docs" / "images").rglob("*.png")]
    assert len(pictures) > 20
    large = {one.name for one in pictures if one.stat().st_size > 150_000}
    assert large <= {"animation.png"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_exist(page: Path) -> None:
    relative = [link for link in _links(page) if "://" not in link]
    own = [link for link in relative if link.startswith("#")]
    assert [link for link in own if link[1:] not in _anchors(page)] == []
    assert [link for link in relative if link not in own and not _is_there(link, page.parent)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_named_files_exist(page: Path) -> None:
    """Names of files in code, such as `trees/growth.py`, are those of files of the repository."""
    names = re.findall(r"`([\w./]+\.py)`", page.read_text(encoding="utf-8"))
    files = [path.as_posix() for path in (*PACKAGE.rglob("*.py"), *ROOT.glob("[et]*/**/*.py"))]
    assert [name for name in names if not any(path.endswith(f"/{name}") for path in files)] == []


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.name)
def test_rows_of_a_table_have_as_many_cells_as_its_header(page: Path) -> None:
    n_cells = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.startswith("|"):
            n_cells = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", line))) - 1
        n_cells = n_cells or cells
        assert cells == n_cells, f"{page.name}, line {number}: {line}"


def test_every_page_is_linked() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {
        (page.parent / link.partition("#")[0]).resolve() for page in PAGES for link in _links(page)
    }
    assert [page.name for page in PAGES[2:] if page != index and page.resolve() not in linked] == []


def test_project_urls() -> None:
    expected = {"Homepage", "Documentation", "Issues", "Changelog", "Source"}
    assert set(PROJECT["urls"]) == expected
    assert all(url.startswith(SOURCE) for url in PROJECT["urls"].values())


# The site: every page is in its menu, every public name in its reference --------------------------

DOCS = ROOT / "docs"
FACES = (
    "mondrian_bo",
    "mondrian_bo.search_space",
    "mondrian_bo.optimizer",
    "mondrian_bo.importance",
    "mondrian_bo.acquisitions",
    "mondrian_bo.surrogates",
    "mondrian_bo.integrations.optuna",
    "mondrian_bo.plotting",
    "mondrian_bo.plotting.plotly",
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
        elif re.fullmatch(r"(   |\.\. py:data:: )\w+", line):
            found.setdefault(module, set()).add(line.split()[-1])
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


def test_every_example_has_a_card() -> None:
    gallery = runpy.run_path(str(DOCS / "gallery.py"))
    source = [(DOCS / "examples.rst").read_text(encoding="utf-8")]
    gallery["_add_cards"](None, "examples", source)
    scripts = {
        script.relative_to(ROOT).as_posix() for script in (ROOT / "examples").rglob("[!_]*.py")
    }
    commands = re.findall(r"^      ``python (\S+)``$", source[0], flags=re.MULTILINE)
    assert len(commands) == len(scripts) and set(commands) == scripts
    pictures = re.findall(r":img-top: /(\S+)", source[0])
    assert len(pictures) > 20 and all((DOCS / picture).exists() for picture in pictures)


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


def test_ranks_of_samplers_are_those_of_the_benchmarks() -> None:
    """Pages samplers.md and faq.md repeat numbers: they are those of benchmarks.md."""

    def rows(name: str) -> dict[str, list[str]]:
        lines = (DOCS / name).read_text(encoding="utf-8").splitlines()
        cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
        return {row[0]: row[1:] for row in reversed(cells)}

    here, there = rows("samplers.md"), rows("benchmarks.md")
    default = "`MondrianSampler()`"
    for sampler in (default, "CMA-ES", '`surrogate="forest"`', "random"):
        at_quarter, _, at_end, wins = there[sampler]
        assert here[sampler][:3] == [at_quarter, at_end, wins]
    answers = " ".join((DOCS / "how-to" / "faq.md").read_text(encoding="utf-8").split())
    at_quarter, _, at_end, _ = there[default]
    assert f"is {at_quarter} at 25 % of the budget and {at_end} at its end." in answers

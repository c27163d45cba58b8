"""Links of the documentation: to files and headings that exist, and absolute in the README."""

from __future__ import annotations

import re
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

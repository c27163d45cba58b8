"""Prepare a release: version, changelog, recipe, distributions, commit and tag.

``python tools/release.py 0.2.0 --dry-run`` shows all of it and changes nothing. The work is done in
a clone, which reaches the repository only when every step has succeeded. Nothing is uploaded.
``docs/releasing.md`` has the steps before and after.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import check_wheel
from packaging.version import InvalidVersion, Version

BRANCH = "main"
"""The branch that is released."""

RECIPE = Path("packaging/conda/recipe.yaml")
"""The conda recipe."""

UNRELEASED = "## [Unreleased]\n"
"""Heading of the changes since the last release."""

Builder = Callable[[Path, Path], check_wheel.Distributions]
"""Builds the distributions of a tree (first argument) in a new folder (second)."""


def git(root: Path, *arguments: str) -> str:
    """Return the output of a git command."""
    return check_wheel.run("git", *arguments, cwd=root).strip()


def check_version(root: Path, version: str) -> None:
    """Exit unless the version is in normal form, and later than every tag."""
    try:
        wanted = Version(version)
    except InvalidVersion as error:
        sys.exit(str(error))
    if str(wanted) != version:
        sys.exit(f"the normal form of {version} is {wanted}")
    for tag in git(root, "tag", "--list", "v*").split():
        if Version(tag.removeprefix("v")) >= wanted:
            sys.exit(f"{version} is not later than the tag {tag}")


def check_tree(root: Path) -> None:
    """Exit unless the released branch is checked out and has no changes."""
    if git(root, "status", "--porcelain"):
        sys.exit("the work tree has changes: commit them first")
    branch = git(root, "rev-parse", "--abbrev-ref", "HEAD")
    if branch != BRANCH:
        sys.exit(f"the branch is {branch}, not {BRANCH}")


def unreleased_notes(changelog: str) -> str:
    """Return the text of the changes since the last release."""
    _, _, rest = changelog.partition(UNRELEASED)
    return re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip()


def write_version(root: Path, version: str, date: str) -> None:
    """Write the version wherever it stands, and the date of the release.

    Parameters
    ----------
    root : Path
        The tree to change.
    version, date : str
        The version, and the day as YYYY-MM-DD.
    """
    changelog = root / "CHANGELOG.md"
    if not unreleased_notes(changelog.read_text(encoding="utf-8")):
        sys.exit("CHANGELOG.md has no notes under Unreleased")
    _replace(changelog, re.escape(UNRELEASED), f"{UNRELEASED}\n## [{version}] - {date}\n")
    module = root / check_wheel.PACKAGE / "version.py"
    _replace(module, r'^__version__ = ".*"$', f'__version__ = "{version}"')
    citation = root / "CITATION.cff"
    _replace(
        citation,
        r"^version: .*$(\ndate-released: .*$)?",
        f'version: {version}\ndate-released: "{date}"',
    )
    _replace(root / RECIPE, r'^  version: ".*"$', f'  version: "{version}"')


def write_checksum(root: Path, sdist: Path) -> None:
    """Write the checksum of the source distribution, which does not hold the recipe, to it."""
    _replace(root / RECIPE, r'^  sha256: "?\w+"?$', f'  sha256: "{check_wheel.sha256(sdist)}"')


def _replace(path: Path, pattern: str, text: str) -> None:
    """Replace the single place where a pattern matches; exit if there is not exactly one."""
    former = path.read_text(encoding="utf-8")
    changed, n_places = re.subn(pattern, lambda _: text, former, flags=re.MULTILINE)
    if n_places != 1:
        sys.exit(f"{path.name}: {pattern!r} matches {n_places} times, not once")
    path.write_text(changed, encoding="utf-8")


def build_and_check(root: Path, work: Path) -> check_wheel.Distributions:
    """Build twice, and check bytes, contents and metadata."""
    files = check_wheel.build_twice(root, work)
    check_wheel.check_contents(files, root)
    check_wheel.check_metadata(files, work)
    return files


def release(
    root: Path, version: str, date: str, *, dry_run: bool, build: Builder = build_and_check
) -> None:
    """Make the commit, the tag and the files of a release.

    Parameters
    ----------
    root : Path
        The repository.
    version, date : str
        The version, and the day as YYYY-MM-DD.
    dry_run : bool
        Show the commit and leave the repository as it is. It takes the commit that is checked out,
        of any branch.
    build : callable
        Builds the distributions.
    """
    if not dry_run:
        check_tree(root)
    check_version(root, version)
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        clone, work = Path(folder) / "clone", Path(folder) / "work"
        git(root, "clone", "--quiet", str(root), str(clone))
        for setting in ("user.name", "user.email"):
            git(clone, "config", setting, git(root, "config", setting))
        write_version(clone, version, date)
        work.mkdir()
        files = build(clone, work)
        if files.version != version:
            sys.exit(f"the files are those of version {files.version}")
        write_checksum(clone, files.sdist)
        git(clone, "commit", "--quiet", "--all", "--message", f"Release {version}")
        git(clone, "tag", "--annotate", f"v{version}", "--message", f"mondrian-bo {version}")
        print(git(clone, "show", "--format=%n%an: %s", "HEAD"))
        if dry_run:
            print("\ndry run: the repository is as it was")
            return
        git(root, "pull", "--quiet", "--ff-only", "--tags", str(clone), "HEAD")
        (root / "dist").mkdir(exist_ok=True)
        for file in files:
            shutil.copy2(file, root / "dist")
    print(
        f"\nCommit and tag v{version} are made, and dist/ has the files. Next, as "
        f"docs/releasing.md says:\n    git push origin {BRANCH} v{version}"
    )


def main() -> None:
    """Read the arguments and make the release."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", help="the version, such as 0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="show everything, change nothing")
    today = datetime.datetime.now(datetime.UTC).date()
    parser.add_argument(
        "--date",
        type=datetime.date.fromisoformat,
        default=today,
        help="day of the release (default: today, UTC)",
    )
    arguments = parser.parse_args()
    release(check_wheel.ROOT, arguments.version, str(arguments.date), dry_run=arguments.dry_run)


if __name__ == "__main__":
    main()

"""The release script, on a small repository of its own, with files that are not built."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_wheel  # noqa: E402
import release as script  # noqa: E402

sys.path.pop(0)

COPIED = ("CITATION.cff", "mondrian_bo/version.py", "packaging/conda/recipe.yaml")
NOTES = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n"


def git(root, *arguments):
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def root(tmp_path):
    """Return a repository with the files that a release changes."""
    folder = tmp_path / "repository"
    for name in COPIED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "CHANGELOG.md").write_text(NOTES, encoding="utf-8")
    (folder / ".gitignore").write_text("dist/\n", encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@example.org")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "start")
    return folder


def build(root, work):
    """Write files whose content is the version in the package."""
    text = (root / "mondrian_bo/version.py").read_text(encoding="utf-8")
    version = text.split('__version__ = "')[1].split('"')[0]
    wheel = work / f"mondrian_bo-{version}-py3-none-any.whl"
    sdist = work / f"mondrian_bo-{version}.tar.gz"
    wheel.write_text("wheel")
    sdist.write_text(version)
    return check_wheel.Distributions(wheel, sdist)


def make(root, version="1.2.0", **options):
    options = {"dry_run": False, "build": build} | options
    script.release(root, version, "2030-04-05", **options)


def test_a_release(root, capsys):
    make(root)
    assert git(root, "describe") == "v1.2.0"
    assert git(root, "cat-file", "-t", "v1.2.0") == "tag"
    assert git(root, "log", "-1", "--format=%an %s") == "A Release 1.2.0"
    assert git(root, "status", "--porcelain") == ""
    texts = {name: (root / name).read_text(encoding="utf-8") for name in COPIED}
    assert '\n__version__ = "1.2.0"\n' in texts["mondrian_bo/version.py"]
    assert '\nversion: 1.2.0\ndate-released: "2030-04-05"\n' in texts["CITATION.cff"]
    assert '\n  version: "1.2.0"\n' in texts["packaging/conda/recipe.yaml"]
    sdist = root / "dist" / "mondrian_bo-1.2.0.tar.gz"
    assert f'\n  sha256: "{check_wheel.sha256(sdist)}"\n' in texts["packaging/conda/recipe.yaml"]
    heading = "## [Unreleased]\n\n## [1.2.0] - 2030-04-05\n\n### Added\n"
    assert heading in (root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "git push origin main v1.2.0" in capsys.readouterr().out


def test_a_second_release(root):
    make(root)
    path = root / "CHANGELOG.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("## [Unreleased]\n", "## [Unreleased]\n\n- Another.\n"))
    git(root, "commit", "--quiet", "--all", "--message", "more")
    make(root, "1.10.0")
    assert git(root, "describe") == "v1.10.0"
    assert (root / "CITATION.cff").read_text(encoding="utf-8").count("date-released") == 1


def test_a_dry_run_changes_nothing(root, capsys):
    former = git(root, "rev-parse", "HEAD")
    make(root, dry_run=True)
    assert git(root, "rev-parse", "HEAD") == former
    assert git(root, "tag", "--list") == git(root, "status", "--porcelain") == ""
    assert not (root / "dist").exists()
    assert '+__version__ = "1.2.0"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("version", "reason"),
    [("one", "Invalid version"), ("1.02", "normal form"), ("1.1.0", "later than the tag v1.1.0")],
)
def test_versions_that_are_refused(root, version, reason):
    git(root, "tag", "v1.1.0")
    with pytest.raises(SystemExit, match=reason):
        make(root, version)


def test_trees_that_are_refused(root):
    git(root, "checkout", "--quiet", "-b", "other")
    with pytest.raises(SystemExit, match="the branch is other"):
        make(root)
    (root / "CHANGELOG.md").write_text("")
    with pytest.raises(SystemExit, match="has changes"):
        make(root)


def test_a_release_without_notes_is_refused(root):
    make(root)
    with pytest.raises(SystemExit, match="no notes"):
        make(root, "1.3.0")


def test_a_failed_build_leaves_the_repository(root):
    def broken(root, work):
        sys.exit("broken")

    with pytest.raises(SystemExit, match="broken"):
        make(root, build=broken)
    assert git(root, "status", "--porcelain") == git(root, "tag", "--list") == ""


def test_times_of_files_are_the_day_of_the_release(tmp_path):
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(NOTES)
    assert check_wheel.source_date_epoch(tmp_path) == check_wheel.UNRELEASED_EPOCH
    changelog.write_text(f"{NOTES}\n## [0.2.0] - 1980-01-02\n\n## [0.1.0] - 1980-01-01\n")
    assert check_wheel.source_date_epoch(tmp_path) == (10 * 365 + 2 + 1) * 24 * 3600

"""Build wheel and sdist twice, check bytes and contents, and use both in a clean environment.

``make wheel`` runs this script with an interpreter that has ``build`` and ``twine``.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
"""The repository."""

PACKAGE = "mondrian_bo"
"""Name of the package and of its directory."""

_SUFFIXES = {".py", ".csv", ".json", ".npz"}
"""Endings of code and data that are shipped."""

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", "*-output", "site"
)
"""Files outside of the repository: a stale build/ would put deleted modules in the wheel."""

BESIDE_THE_PACKAGE = {
    *("LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff"),
    *("pyproject.toml", "PKG-INFO", ".gitignore"),
}
"""Files of the sdist outside of the package."""

OPTIONAL_MODULES = (
    f"{PACKAGE}.integrations.ax",
    f"{PACKAGE}.benchmarks.harness.ax_run",
    f"{PACKAGE}.benchmarks.suites.ax",
    f"{PACKAGE}.integrations.river",
    f"{PACKAGE}.benchmarks.suites.streams.river_worker",
)
"""Modules that need Ax or river, which the clean environment does not have."""

UNRELEASED_EPOCH = 1577836800
"""Time of the files in builds before the first release, in seconds: 1 January 2020."""

RELEASED = re.compile(r"^## \[\d[^\]]*\] - (\d{4}-\d{2}-\d{2})$", flags=re.MULTILINE)
"""The heading of a release in the changelog."""

USE_IT = """
import importlib, importlib.metadata, pathlib, pkgutil, sys
import mondrian_bo
version, *optional = sys.argv[1:]
home = pathlib.Path(mondrian_bo.__file__).resolve()
assert pathlib.Path(sys.prefix).resolve() in home.parents, f"imported from {home}"
assert mondrian_bo.__version__ == importlib.metadata.version("mondrian-bo") == version, version
modules = [m.name for m in pkgutil.walk_packages(mondrian_bo.__path__, "mondrian_bo.")]
for name in modules:
    if name.rpartition(".")[2] != "__main__" and not name.startswith(tuple(optional)):
        importlib.import_module(name)
for name in mondrian_bo.__all__:
    getattr(mondrian_bo, name)
print(f"imported {len(modules)} modules")
"""
"""Program for the clean environment. Its arguments are the version and the optional modules."""


class Distributions(NamedTuple):
    """The two files of a release."""

    wheel: Path
    sdist: Path

    @property
    def version(self) -> str:
        """The version, from the name of the wheel."""
        return self.wheel.name.split("-")[1]


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a command and return its output; exit with the output if it fails."""
    clean = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(
        command, cwd=cwd, env=clean | (env or {}), stdout=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(map(str, command))}")
    return done.stdout


def source_date_epoch(root: Path) -> int:
    """Return the time that files of a build get: the date of the newest release, in seconds.

    It is read from the changelog, so that everyone who has the sources builds the same bytes.
    """
    dates = RELEASED.findall((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if not dates:
        return UNRELEASED_EPOCH
    newest = datetime.datetime.fromisoformat(max(dates)).replace(tzinfo=datetime.UTC)
    return int(newest.timestamp())


def build_once(
    root: Path, work: Path, *, isolated: bool, umask: int, epoch_of_sources: int
) -> Distributions:
    """Build from a copy of the tree that has no build products.

    Parameters
    ----------
    root : Path
        The repository.
    work : Path
        A folder that does not exist; the result is in it.
    isolated : bool
        Whether the build installs what pyproject.toml says it needs, or uses what is installed.
    umask : int
        Permissions that new files do not get.
    epoch_of_sources : int
        Time of change of every source file, in seconds.
    """
    source = work / "source"
    shutil.copytree(root, source, symlinks=True, ignore=LEFT_OUT)
    for path in source.rglob("*"):
        os.utime(path, (epoch_of_sources, epoch_of_sources), follow_symlinks=False)
    env = {
        "SOURCE_DATE_EPOCH": str(source_date_epoch(root)),
        # The build tool that is installed for the build is a pinned one.
        "PIP_CONSTRAINT": str(root / "constraints.txt"),
    }
    former = os.umask(umask)
    try:
        how = () if isolated else ("--no-isolation",)
        command = (sys.executable, "-m", "build", *how, "--outdir", work / "dist", source)
        run(*command, cwd=work, env=env)
    finally:
        os.umask(former)
    (wheel,) = (work / "dist").glob("*.whl")
    (sdist,) = (work / "dist").glob("*.tar.gz")
    return Distributions(wheel, sdist)


def build_twice(root: Path, work: Path) -> Distributions:
    """Build in two folders with other permissions and times of change; the bytes must agree."""
    first = build_once(
        root, work / "first", isolated=True, umask=0o022, epoch_of_sources=1_500_000_000
    )
    second = build_once(
        root, work / "second", isolated=False, umask=0o077, epoch_of_sources=1_600_000_000
    )
    for one, other in zip(first, second, strict=True):
        if one.read_bytes() != other.read_bytes():
            sys.exit(f"two builds of {one.name} differ: {one} and {other}")
        print(f"{one.name}: twice the same, sha256 {sha256(one)}")
    return first


def sha256(path: Path) -> str:
    """Return the checksum of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_contents(files: Distributions, root: Path) -> None:
    """Compare the files of wheel and sdist with those of the package."""
    wanted = {
        path.relative_to(root).as_posix()
        for path in (root / PACKAGE).rglob("*")
        if path.is_file() and (path.suffix in _SUFFIXES or path.name == "py.typed")
    }
    dist_info = "-".join(files.wheel.name.split("-")[:2]) + ".dist-info"
    with zipfile.ZipFile(files.wheel) as archive:
        names = {PurePosixPath(n) for n in archive.namelist() if not n.endswith("/")}
    if not [n for n in names if n.parts[0] == dist_info and n.name == "LICENSE"]:
        sys.exit("the wheel holds no LICENSE")
    packed = {str(n) for n in names if n.parts[0] != dist_info}
    _compare(files.wheel, packed, wanted)

    top = files.sdist.name.removesuffix(".tar.gz")
    with tarfile.open(files.sdist) as archive:
        members = {member.name for member in archive if not member.isdir()}
    foreign = sorted(name for name in members if not name.startswith(f"{top}/"))
    if foreign:
        sys.exit(f"the sdist holds files outside of {top}: {foreign}")
    _compare(
        files.sdist, {name.removeprefix(f"{top}/") for name in members}, wanted | BESIDE_THE_PACKAGE
    )


def _compare(file: Path, packed: set[str], wanted: set[str]) -> None:
    if packed != wanted:
        missing, extra = sorted(wanted - packed), sorted(packed - wanted)
        sys.exit(f"{file.name} and the package differ: missing {missing}, extra {extra}")
    print(f"{file.name}: {len(packed)} files, {file.stat().st_size / 1024:.0f} kB")


def check_metadata(files: Distributions, work: Path) -> None:
    """Let twine check what a package index would refuse or not show."""
    run(sys.executable, "-m", "twine", "check", "--strict", *files, cwd=work)
    print("twine check: passed")


def use_in_clean_environment(files: Distributions, work: Path) -> None:
    """Install wheel and sdist without any extra, import every module, and start the command."""
    venv = work / "venv"
    run(sys.executable, "-m", "venv", venv, cwd=work)
    scripts = venv / ("Scripts" if os.name == "nt" else "bin")
    pip = (scripts / "python", "-m", "pip", "--disable-pip-version-check")
    constraints = ("--constraint", ROOT / "constraints.txt")
    version = files.version
    for file in files:
        # The sdist replaces the wheel. What it needs is there already.
        again = ("--force-reinstall", "--no-deps") if file == files.sdist else ()
        run(*pip, "install", "--quiet", *again, *constraints, file, cwd=work)
        print(f"{file.name}: {run(*pip, 'check', cwd=work).strip()}")
        use_it = (scripts / "python", "-I", "-c", USE_IT, version, *OPTIONAL_MODULES)
        print(run(*use_it, cwd=work).strip())
        printed = run(scripts / "mondrian-bo", "--version", cwd=work).strip()
        if version not in printed.split():
            sys.exit(f"mondrian-bo --version printed {printed!r}, not {version}")
        print(printed)


def main() -> None:
    """Run every check; exit with a message at the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder that gets the checked files")
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory(prefix="check-wheel-") as folder:
        work = Path(folder)
        files = build_twice(ROOT, work)
        check_contents(files, ROOT)
        check_metadata(files, work)
        use_in_clean_environment(files, work)
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            for file in files:
                shutil.copy2(file, out)
    print("wheel and sdist: all checks passed")


if __name__ == "__main__":
    main()

"""Build the wheel, check its contents, and use it in a clean environment.

``make wheel`` runs this script with an interpreter that has ``build``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
"""The repository."""

PACKAGE = "mondrian_bo"
"""Name of the package and of its directory."""

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", "*-output"
)
"""Files outside of the repository: a stale build/ would put deleted modules in the wheel."""

OPTIONAL_MODULES = (
    f"{PACKAGE}.integrations.ax",
    f"{PACKAGE}.benchmarks.harness.ax_run",
    f"{PACKAGE}.benchmarks.suites.ax_overhead",
)
"""Modules that need Ax, which the clean environment does not have."""

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


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command and return its output; exit with the output if it fails."""
    env = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(map(str, command))}")
    return done.stdout


def build_wheel(work: Path) -> Path:
    """Build the wheel from a copy of the tree that has no build products."""
    source = work / "source"
    shutil.copytree(ROOT, source, symlinks=True, ignore=LEFT_OUT)
    command = (sys.executable, "-m", "build", "--wheel", "--outdir", work / "dist", source)
    print(run(*command, cwd=work).splitlines()[-1])
    (wheel,) = (work / "dist").glob("*.whl")
    return wheel


def check_contents(wheel: Path) -> None:
    """Compare the wheel's files with the files of the package."""
    dist_info = "-".join(wheel.name.split("-")[:2]) + ".dist-info"
    with zipfile.ZipFile(wheel) as archive:
        names = {PurePosixPath(n) for n in archive.namelist() if not n.endswith("/")}
    foreign = sorted(str(n) for n in names if n.parts[0] not in {PACKAGE, dist_info})
    if foreign:
        sys.exit(f"the wheel holds files outside of {PACKAGE}: {foreign}")
    packed = {str(n) for n in names if n.parts[0] == PACKAGE}
    wanted = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / PACKAGE).rglob("*")
        if path.is_file() and (path.suffix in {".py", ".csv", ".json"} or path.name == "py.typed")
    }
    if packed != wanted:
        missing, extra = sorted(wanted - packed), sorted(packed - wanted)
        sys.exit(f"the wheel and the package differ: missing {missing}, extra {extra}")
    licences = [n for n in names if n.parts[0] == dist_info and n.name == "LICENSE"]
    if not licences:
        sys.exit("the wheel holds no LICENSE")
    print(f"{wheel.name}: {len(packed)} files of {PACKAGE}, {wheel.stat().st_size / 1024:.0f} kB")


def use_wheel(wheel: Path, work: Path) -> None:
    """Install the wheel without any extra, import every module, and start the command."""
    venv = work / "venv"
    run(sys.executable, "-m", "venv", venv, cwd=work)
    scripts = venv / ("Scripts" if os.name == "nt" else "bin")
    pip = (scripts / "python", "-m", "pip", "--disable-pip-version-check")
    constraints = ("--constraint", ROOT / "constraints.txt")
    run(*pip, "install", "--quiet", *constraints, wheel, cwd=work)
    print(run(*pip, "check", cwd=work).strip())
    version = wheel.name.split("-")[1]
    print(run(scripts / "python", "-I", "-c", USE_IT, version, *OPTIONAL_MODULES, cwd=work).strip())
    printed = run(scripts / "mondrian-bo", "--version", cwd=work).strip()
    if version not in printed.split():
        sys.exit(f"mondrian-bo --version printed {printed!r}, not {version}")
    print(printed)


def main() -> None:
    """Run every check; exit with a message at the first that fails."""
    with tempfile.TemporaryDirectory(prefix="check-wheel-") as folder:
        work = Path(folder)
        wheel = build_wheel(work)
        check_contents(wheel)
        use_wheel(wheel, work)
    print("wheel: all checks passed")


if __name__ == "__main__":
    main()

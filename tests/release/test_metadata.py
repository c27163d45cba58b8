"""The metadata: what CI tests is what pyproject.toml declares."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
STEPS = " ".join(re.findall(r"^for step in (.*); do$", CI, flags=re.MULTILINE)).split()
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def _pins(name: str) -> dict[str, Version]:
    """Versions of a constraints file."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {package: Version(version) for package, version in pairs}


def _lower_bound(requirement: Requirement) -> Version:
    (bound,) = [one.version for one in requirement.specifier if one.operator == ">="]
    return Version(bound)


def test_classifiers_are_the_versions_that_ci_tests():
    prefix = "Programming Language :: Python :: 3."
    classified = {
        f"3.{one.removeprefix(prefix)}" for one in PROJECT["classifiers"] if one.startswith(prefix)
    }
    (others,) = re.findall(r"^PYTHONS := (.*)$", MAKEFILE, flags=re.MULTILINE)
    first = PROJECT["requires-python"].removeprefix(">=")
    assert classified == {first, *others.split()}
    assert {"test", "pythons"} <= set(STEPS)


def test_oldest_versions_are_those_that_are_declared():
    wanted = [*PROJECT["dependencies"], *EXTRAS["suite"]]
    declared = {one.name: _lower_bound(one) for one in map(Requirement, wanted)}
    assert _pins("oldest.txt") == declared
    assert "oldest" in STEPS


def test_oldest_environment_has_the_oldest_versions():
    """Says nothing but in the environment of `make oldest`."""
    if ".venv-oldest" in Path(sys.prefix).name:
        pins = _pins("oldest.txt")
        assert {one: Version(importlib.metadata.version(one)) for one in pins} == pins


def test_upper_bounds_have_a_reason():
    """Only where a later version would break: see the comments of pyproject.toml."""
    everything = [*PROJECT["dependencies"], *(one for extra in EXTRAS.values() for one in extra)]
    bounded = {
        one.name
        for one in map(Requirement, everything)
        if any(part.operator not in {">=", "!="} for part in one.specifier)
    }
    assert bounded == {"optuna", "optuna-integration", "ax-platform"}


def test_tools_of_ci_are_pinned():
    pins = _pins("constraints.txt")
    tools = map(Requirement, [*EXTRAS["lint"], *EXTRAS["typing"]])
    assert {one.name for one in tools} - {PROJECT["name"]} <= set(pins)
    assert all(
        pins[one.name] in one.specifier
        for extra in EXTRAS.values()
        for one in map(Requirement, extra)
        if one.name in pins
    )

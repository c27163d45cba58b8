"""The conda recipe says the same as pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

import mondrian_bo

ROOT = Path(__file__).parents[2]
RECIPE = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


def _spaced(requirement: str) -> str:
    """Return a requirement as conda writes it: a space before the versions."""
    return re.sub(r"(?<=\w)(?=[<>=])", " ", requirement, count=1)


def test_name_version_and_licence():
    assert RECIPE["package"] == {"name": PROJECT["name"], "version": "${{ version }}"}
    assert RECIPE["context"]["version"] == mondrian_bo.__version__
    assert RECIPE["about"]["license"] == PROJECT["license"]
    assert [RECIPE["about"]["license_file"]] == PROJECT["license-files"]


def test_requirements():
    python_min = RECIPE["context"]["python_min"]
    assert PROJECT["requires-python"] == f">={python_min}"
    python, *run = RECIPE["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    assert sorted(run) == sorted(_spaced(one) for one in PROJECT["dependencies"])
    host = RECIPE["requirements"]["host"]
    assert [_spaced(one) for one in PYPROJECT["build-system"]["requires"]] == host[2:]


def test_commands_and_addresses():
    scripts = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert RECIPE["build"]["python"]["entry_points"] == scripts
    urls = PROJECT["urls"]
    assert RECIPE["about"]["repository"] == urls["Source"]
    assert RECIPE["about"]["homepage"] == urls["Homepage"]
    assert RECIPE["about"]["documentation"] == urls["Documentation"]
    assert RECIPE["source"]["url"].startswith(f"{urls['Source']}/releases/download/v")
    assert re.fullmatch(r"[0-9a-f]{64}", RECIPE["source"]["sha256"])

"""The package folder for OptunaHub: it loads as the hub loads it, and its code runs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import optuna
import pytest
import yaml

import mondrian_bo

ROOT = Path(__file__).parents[2]
REGISTRY = ROOT / "optunahub"
FOLDER = REGISTRY / "mondrian_sampler"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
LOAD_HERE = (
    "import optunahub\n"
    "def load_module(name):\n"
    "    assert name == 'samplers/mondrian_sampler'\n"
    f"    return optunahub.load_local_module('mondrian_sampler', registry_root={str(REGISTRY)!r})\n"
    "optunahub.load_module = load_module\n"
)
"""Code that replaces the download from the hub."""


def test_it_loads():
    optunahub = pytest.importorskip("optunahub", reason="optunahub is in the test extra")
    module = optunahub.load_local_module("mondrian_sampler", registry_root=str(REGISTRY))
    assert module.MondrianSampler is mondrian_bo.MondrianSampler
    study = optuna.create_study(sampler=module.MondrianSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    assert len(study.trials) == 3


def _code_of_readme() -> str:
    (code,) = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    return code


@pytest.mark.parametrize("source", ["example.py", "README.md"])
def test_code_runs(source):
    pytest.importorskip("optunahub", reason="optunahub is in the test extra")
    code = _code_of_readme() if source == "README.md" else (FOLDER / source).read_text()
    # "from __future__" has to be the first statement.
    code = code.replace("from __future__ import annotations\n", "")
    done = subprocess.run(
        [sys.executable, "-c", LOAD_HERE + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    params, value = re.fullmatch(r"(\{.*\}) (\S+)", done.stdout.strip()).groups()
    assert ast.literal_eval(params)["shape"] == "bowl"
    assert float(value) < 0.01


def test_front_matter():
    _, front, text = README.split("---\n", maxsplit=2)
    fields = yaml.safe_load(front)
    assert list(fields) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert all(fields.values())
    assert "sampler" in fields["tags"]
    assert optuna.__version__ in map(str, fields["optuna_versions"])
    headings = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert headings == ["Abstract", "APIs", "Installation", "Example", "Others"]


def test_licence_is_that_of_the_project():
    assert (FOLDER / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_requirements():
    assert (FOLDER / "requirements.txt").read_text(encoding="utf-8").split() == ["mondrian-bo"]

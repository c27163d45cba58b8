"""Environments of worker processes; pip does not run."""

import subprocess
import sys
from pathlib import Path

import pytest

from mondrian_bo.benchmarks import make_environment


@pytest.fixture
def commands(monkeypatch):
    found = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: found.append(command))
    monkeypatch.setattr(make_environment.venv, "create", lambda *_, **__: None)
    monkeypatch.setattr(sys, "version_info", (3, 11))
    return found


def test_environment_of_onelearn(tmp_path, commands, capsys):
    assert make_environment.main(["onelearn", str(tmp_path)]) == 0
    assert "numba==0.58.*" in commands[0] and "numpy==1.26.*" in commands[0]
    assert commands[1][-2:] == ["--no-deps", "onelearn==0.3.0"]
    assert capsys.readouterr().out.startswith(f"--onelearn-python {tmp_path}")


@pytest.mark.parametrize("name", ["bayesmark", "hebo", "smac"])
def test_environments_that_a_variable_names(name, tmp_path, commands, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert make_environment.main([name, "env"]) == 0
    assert all(command[1:5] == ["-m", "pip", "install", "--quiet"] for command in commands)
    assert any(
        requirement.startswith(f"{name}==") for command in commands for requirement in command
    )
    variable, _, python = capsys.readouterr().out.strip().partition("=")
    assert variable == f"MONDRIAN_BO_{name.upper()}_PYTHON"
    # A run may start in another folder.
    assert Path(python).is_relative_to(tmp_path / "env")


def test_an_old_python_is_needed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 12))
    with pytest.raises(SystemExit):
        make_environment.main(["onelearn", str(tmp_path)])
    assert "3.11 or older" in capsys.readouterr().err

"""The README's code and the demo run as they stand, with the package that is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def _run(*command: str, cwd: Path) -> str:
    """Output of a Python process of its own, in a folder of its own."""
    env = os.environ | {"MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_readme_has_code() -> None:
    assert len(BLOCKS) >= 2


@pytest.mark.parametrize("code", BLOCKS, ids=range(len(BLOCKS)))
def test_readme_code_runs(code: str, tmp_path: Path) -> None:
    _run("-c", code, cwd=tmp_path)


def test_readme_links_exist() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert targets
    missing = [t for t in targets if "://" not in t and not (ROOT / t).exists()]
    assert not missing


@pytest.mark.parametrize("name", ["amf_learning_rates", "amf_smoothing", "feature_relevance"])
def test_tables_are_printed(name: str, tmp_path: Path) -> None:
    script = str(ROOT / "examples" / f"{name}.py")
    printed = _run(script, "--samples", "60", "--seeds", "1", cwd=tmp_path)
    header, *rows = printed.splitlines()
    assert header and len(rows) >= 8
    assert all("± 0.000" in row for row in rows)


def test_demo_runs_and_resumes(tmp_path: Path) -> None:
    command = (str(ROOT / "examples" / "demo.py"), "--output", "out", "--trials")
    first = _run(*command, "3", cwd=tmp_path)
    assert "MondrianSampler, seed 0: 3 trials\n" in first
    assert (tmp_path / "out" / "history.png").stat().st_size > 1000
    again = _run(*command, "5", cwd=tmp_path)
    assert "MondrianSampler, seed 0: 2 trials after 3\n" in again
    done = _run(*command, "5", cwd=tmp_path)
    assert "MondrianSampler, seed 0: 5 trials already" in done
    assert "each run of 5 trials" in done

"""Replicates: a small table, and policies that repeat points."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from mondrian_bo.benchmarks.suites import replicates


def test_summary() -> None:
    never = np.arange(1.0, 11.0)
    rows = replicates.summary(np.array([[never, never - 0.5, never + 0.5]] * 3))[1]
    assert len(rows) == 3
    _, own, better, p_better, _, p_worse = rows[0]
    assert own.startswith("5.5 ±") and better.startswith("5 ±")
    assert float(p_better) < 0.01 and float(p_worse) > 0.99


def test_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicates, "PROBLEMS", ("shifted_branin_noisy",))
    monkeypatch.setattr(replicates, "_FIRST", 6)
    replicates.run(Namespace(seeds=2, trials=16, jobs=1, out=tmp_path))
    assert "every fifth" in capsys.readouterr().out
    assert (tmp_path / "replicates.md").is_file()

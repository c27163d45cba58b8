"""The comparison of recommended trials: cells and a small table."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from mondrian_bo.benchmarks.suites import robust


def test_cells() -> None:
    runs = np.array([[2.0, 1.0]] * 8 + [[1.0, 1.0], [1.0, 2.0]])
    observed, predicted, counts, p = robust.cells(runs)
    assert observed.startswith("1.8 ±") and predicted.startswith("1.1 ±")
    assert counts == "8, 1"
    assert p.endswith("*")
    assert robust.cells(np.ones((5, 2)))[3] == "1"


def test_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(robust.problems()) == 6
    monkeypatch.setattr(robust, "problems", lambda: ["shifted_branin_noisy"])
    robust.run(Namespace(seeds=2, trials=15, jobs=1, out=tmp_path))
    printed = capsys.readouterr().out
    assert all(name in printed for name in robust.SAMPLERS)
    assert (tmp_path / "robust.md").read_text(encoding="utf-8").count("\n") == 5

"""The comparison of importances: true shares, and a small table."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from mondrian_bo.benchmarks.suites import importance
from mondrian_bo.optimizer.maximization.sobol import sobol_points


@pytest.mark.parametrize("name", importance.FUNCTIONS)
def test_true_main_effects(name: str) -> None:
    """The stated variances are those of averages over all other inputs."""
    function, main = importance.FUNCTIONS[name]
    d = len(main)
    nodes = (np.arange(32) + 0.5) / 32
    others = (sobol_points(d, 0, 256) + 1 / 512) % 1.0
    for j, variance in enumerate(main):
        curve = []
        for node in nodes:
            points = others.copy()
            points[:, j] = node
            curve.append(np.mean([function(point) for point in points]))
        assert np.var(curve) == pytest.approx(variance, rel=0.1, abs=2e-3)


def test_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importance, "FUNCTIONS", {"additive": importance.FUNCTIONS["additive"]})
    importance.run(Namespace(seeds=1, trials=12, out=tmp_path))
    printed = capsys.readouterr().out
    table = (tmp_path / "importance.md").read_text(encoding="utf-8")
    assert table.count("\n| ") == 3
    for label in importance.EVALUATORS:
        assert label in table and label in printed

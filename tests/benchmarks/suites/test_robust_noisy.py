"""The comparison of recommended trials on COCO's noisy functions."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from mondrian_bo.benchmarks.suites import robust_noisy


def test_a_difference_is_a_mean_of_log_ratios() -> None:
    runs = np.array([[[1.0, 0.1], [100.0, 0.1]], [[1e-12, 1e-9], [1.0, 10.0]]])
    np.testing.assert_allclose(robust_noisy.differences(runs), [-2.0, 0.5])


def test_rows_by_kind_and_over_all() -> None:
    found = np.array([-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, 1.0, 2.0])
    kinds = ["uniform"] * 6 + ["Gaussian"] * 2
    first, second, both = robust_noisy.table({"tpe": found}, kinds)
    assert first[:3] == ["tpe", "uniform", "6 of 6"]
    # Six signs that agree have p = 2 / 64, which Holm multiplies by three.
    assert first[-1] == "0.09"
    assert second[1:5] == ["Gaussian", "0 of 2", "+1.50 ± 0.50", "32"]
    assert both[1:3] == ["all", "6 of 8"]
    assert both[3].startswith("-2.25 ±") and both[4] == "0.0056"


def test_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cocoex", reason="needs coco-experiment")
    functions = robust_noisy.problems()
    assert len(functions) == 30 and {len(one.space) for one in functions} == {5}
    assert [one.kind for one in functions[:3]] == ["Gaussian", "uniform", "Cauchy"]
    monkeypatch.setattr(robust_noisy, "problems", lambda: functions[:6])
    robust_noisy.run(Namespace(seeds=1, trials=8, jobs=1, out=tmp_path))
    assert "Cauchy" in capsys.readouterr().out
    # Four rows for each of three samplers, below the header.
    assert (tmp_path / "robust_noisy.md").read_text(encoding="utf-8").count("\n") == 14

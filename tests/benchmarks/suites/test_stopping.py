"""The measurement of stopping: the rule, the archive, and a small table."""

from __future__ import annotations

import inspect
from argparse import Namespace
from pathlib import Path

import pytest

from mondrian_bo import MondrianTerminator
from mondrian_bo.benchmarks.suites import stopping


def _estimate(n_trials: int, regret: float, bound: float) -> list[float]:
    return [n_trials, regret, 0.0, 0.0, 0.0, bound, 9.0]


def test_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a patience of ten trials it takes three estimates in a row."""
    monkeypatch.setattr(stopping, "_PATIENCE", 10)
    bounds = [0.5, 2.0, 0.5, 0.5, 1.0, 0.1]
    estimates = [_estimate(20 + 5 * i, 10.0 - i, bound) for i, bound in enumerate(bounds)]
    assert stopping.stop_of(estimates, 1.0) == (40, 6.0)
    assert stopping.stop_of(estimates, 0.4) is None
    assert stopping.stop_of(estimates, 3.0) == (30, 8.0)


def test_defaults_are_those_of_the_terminator() -> None:
    defaults = inspect.signature(MondrianTerminator).parameters
    assert defaults["min_trials"].default == stopping._FIRST
    assert defaults["interval"].default == stopping._INTERVAL
    assert defaults["patience"].default == stopping._PATIENCE
    assert defaults["probability"].default == stopping.PROBABILITY
    assert stopping._LEVELS[2] == 1.0 - stopping.PROBABILITY


def test_table_and_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "problems", lambda: ["shifted_branin"])
    arguments = Namespace(seeds=2, trials=30, jobs=1, known=[], out=tmp_path / "first")
    stopping.run(arguments)
    first = capsys.readouterr().out
    assert "shifted_branin" in first
    # The archive makes all runs known.
    monkeypatch.setattr(stopping, "one_run", None)
    known = [tmp_path / "first" / stopping.ARCHIVE]
    stopping.run(Namespace(seeds=2, trials=30, jobs=1, known=known, out=tmp_path / "second"))
    assert capsys.readouterr().out == first

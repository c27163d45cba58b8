"""The measurement of earlier studies: relatives, saved trials, the archive, and small tables."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from mondrian_bo.benchmarks.suites import warm_starts
from mondrian_bo.benchmarks.suites.warm_starts import METHODS, PROBLEMS, RECORDED


def test_saved_trials() -> None:
    cold = np.array([9.0, 5.0, 4.0, 2.0, 1.0, 0.0])
    warm = np.array([3.0, 1.5, 1.0, 1.0, 1.0, 1.0])
    # The target is 1.2: the cold run needs five trials, the other one three.
    assert warm_starts.saved_trials(cold, warm, 0.2) == 2
    assert warm_starts.saved_trials(warm, cold, 0.2) == -2
    assert warm_starts.saved_trials(cold, cold, 0.0) == 0


@pytest.mark.parametrize("name", [*PROBLEMS, *RECORDED])
def test_relatives_are_functions_of_their_own_space(name: str) -> None:
    space, function = warm_starts.task_of(name, 3)
    rows = space.sample(60, np.random.default_rng(0))
    params = [space.from_unit(row) for row in rows]
    values = np.array([function(one) for one in params])
    assert np.isfinite(values).all() and np.ptp(values) > 0.0
    for kind in {kind for method in warm_starts.methods_of(name) for kind in METHODS[method]}:
        own, other = warm_starts.relative(name, 3, kind)
        if kind == "similar":
            assert len(own) < len(space) or name == "conditional"
        found = [other(own.from_unit(row)) for row in own.sample(60, np.random.default_rng(1))]
        assert np.isfinite(found).all() and np.ptp(found) > 0.0
        if kind in ("shifted", "negated", "short"):
            correlation = np.corrcoef(values, [other(one) for one in params])[0, 1]
            assert correlation == pytest.approx(-1.0) if kind == "negated" else correlation > 0.2


def test_tables_and_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_starts, "PROBLEMS", ("conditional",))
    monkeypatch.setattr(warm_starts, "RECORDED", {"mlp_digits": "mlp_diabetes"})
    monkeypatch.setattr(warm_starts, "_N_EARLIER", 12)
    monkeypatch.setattr(warm_starts, "_JUDGED_AT", 11)
    arguments = Namespace(seeds=1, trials=12, jobs=1, known=[], out=tmp_path / "first")
    warm_starts.run(arguments)
    first = capsys.readouterr().out
    assert all(word in first for word in ("conditional", "mlp_digits", "negated", "short"))
    # The archive makes all runs known.
    monkeypatch.setattr(warm_starts, "runs_of", None)
    known = [tmp_path / "first" / warm_starts.ARCHIVE]
    warm_starts.run(Namespace(seeds=1, trials=12, jobs=1, known=known, out=tmp_path / "second"))
    assert capsys.readouterr().out == first

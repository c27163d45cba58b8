"""The code of the README and the examples run, each in a folder of its own."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
from example_runs import EXAMPLES, names_of_example, run_code, run_example
from sklearn.datasets import load_digits

from mondrian_bo.surrogates.mondrian_forest import hyperparameters

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    *("README.md", "docs/outcomes.md", "docs/learning-curves.md", "docs/reading.md"),
    *("docs/tutorials/optuna.md", "docs/tutorials/scikit-learn.md", "docs/mathematics.md"),
    *sorted(
        page.relative_to(ROOT).as_posix()
        for page in (ROOT / "docs" / "how-to").glob("*.md")
        if page.name != "ray.md"  # tests/integrations/engines/test_ray.py
    ),
)
"""Pages whose code runs."""

NEEDS = {"docs/how-to/pytorch.md": "torch", "docs/how-to/dashboard.md": "optuna_dashboard"}
"""Packages of pages that only an extra installs."""


def _blocks() -> Iterator[object]:
    """Blocks of code, skipped where their page needs a package that is missing."""
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        found = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
        package = NEEDS.get(page, "re")
        missing = pytest.mark.skipif(find_spec(package) is None, reason=f"{page} needs {package}")
        for number, code in enumerate(found):
            yield pytest.param(code, id=f"{page}-{number}", marks=missing)


BLOCKS = list(_blocks())


def test_pages_have_code() -> None:
    assert len(BLOCKS) >= 5


@pytest.mark.parametrize("code", BLOCKS)
def test_code_of_pages_runs(code: str, tmp_path: Path) -> None:
    run_code(code, tmp_path)


@pytest.mark.parametrize("name", ["amf_learning_rates", "amf_smoothing", "feature_relevance"])
def test_tables_are_printed(name: str, tmp_path: Path) -> None:
    printed = run_example(f"{name}.py", "--samples", "60", "--seeds", "1", cwd=tmp_path)
    header, *rows = printed.splitlines()
    assert header and len(rows) >= 8
    assert all("± 0.000" in row for row in rows)


def test_uncertainty_is_drawn(tmp_path: Path) -> None:
    printed = run_example("uncertainty.py", "--quick", cwd=tmp_path)
    assert printed.count("std inside") == 5
    # Without --output, pictures go to a folder of their own and not into the documentation.
    assert (tmp_path / "examples-output" / "uncertainty.png").stat().st_size > 3000


def test_acquisition_is_drawn(tmp_path: Path) -> None:
    printed = run_example("acquisition.py", "--quick", "--trials", "11", "13", cwd=tmp_path)
    assert re.findall(r"^(\d+) trials: best", printed, flags=re.MULTILINE) == ["11", "13"]
    assert (tmp_path / "examples-output" / "acquisition.png").stat().st_size > 3000


def test_studies_with_several_outcomes_are_drawn(tmp_path: Path) -> None:
    printed = run_example("several_outcomes.py", "--quick", cwd=tmp_path)
    assert printed.count("MondrianSampler") == 3
    assert (tmp_path / "examples-output" / "several_outcomes.png").stat().st_size > 3000


def test_learning_curves_are_predicted(tmp_path: Path) -> None:
    printed = run_example("learning_curves.py", "--quick", cwd=tmp_path)
    found = re.findall(r": +(\d+) epochs, +(\d+) of 14 trials pruned, loss (\S+)", printed)
    (n_plain, *_), (n_pruned, n_stopped, _) = found
    assert int(n_pruned) < int(n_plain) == 14 * 6
    assert int(n_stopped) > 0
    assert (tmp_path / "examples-output" / "learning_curves.png").stat().st_size > 3000


def test_help_is_quick_and_writes_nothing(tmp_path: Path) -> None:
    scripts = [
        script
        for script in sorted(EXAMPLES.rglob("[a-z]*.py"))
        if find_spec("ax") is not None or not script.stem.startswith("ax_")
    ]
    assert len(scripts) > 40
    for script in scripts:
        start = time.process_time()
        assert run_example(script, "--help", cwd=tmp_path).startswith("usage:"), script
        assert time.process_time() - start < 20.0, script
    assert list(tmp_path.iterdir()) == []


def test_a_study_is_read(tmp_path: Path) -> None:
    printed = run_example("reading.py", "--quick", cwd=tmp_path)
    assert printed.startswith("15 trials\n")
    assert all(word in printed for word in ("momentum", "best value", "best prediction"))
    assert (tmp_path / "examples-output" / "reading.png").stat().st_size > 3000


def test_earlier_studies_are_compared(tmp_path: Path) -> None:
    printed = run_example("earlier_studies.py", "--quick", cwd=tmp_path)
    header, *rows = printed.splitlines()
    assert header.count("trials") == 3 and len(rows) == 3
    _, small, misleading = ([float(cell) for cell in row[22:].split()] for row in rows)
    assert small[-1] < misleading[-1]


def test_weights_explain_predictions(tmp_path: Path) -> None:
    printed = run_example("explain_prediction.py", "--quick", cwd=tmp_path)
    totals = re.findall(r"predicts (\S+) \(weights give (\S+)\)", printed)
    assert len(totals) == 3 and all(one == other for one, other in totals)


def test_conformal_intervals_cover(tmp_path: Path) -> None:
    printed = run_example("conformal_intervals.py", "--quick", cwd=tmp_path)
    header, *rows = printed.splitlines()
    assert "coverage" in header and len(rows) == 3
    # 100 test samples: four standard errors below 0.9.
    assert all(float(row[22:31]) > 0.78 for row in rows[1:])


def test_evidence_is_compared(tmp_path: Path) -> None:
    printed = run_example("evidence.py", "--quick", cwd=tmp_path)
    rows = [line for line in printed.splitlines() if line.startswith("|")]
    assert len(rows) == 4 and {row.count("|") for row in rows} == {8}


def test_leaf_models_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The example sets it for its process, which is that of the tests here.
    monkeypatch.setattr(hyperparameters, "MOST_TARGETS", hyperparameters.MOST_TARGETS)
    options = ("--quick", "--only", "diabetes", "--most-targets", "30", "--models")
    models = ("GP leaves", "uncorrected", "constant leaves")
    header, *rows = run_example(
        "gaussian_process_leaves.py", *options, *models, cwd=tmp_path
    ).splitlines()
    assert "RMSE" in header
    assert len(rows) == len(models)


def test_streams_of_river(tmp_path: Path) -> None:
    printed = run_example("river_track.py", "--quick", cwd=tmp_path)
    header, *rows = printed.splitlines()
    assert "mean absolute error" in header
    assert any(row.startswith("Friedman") for row in rows)
    assert len(rows) >= 10 and all(row.startswith("diabetes") for row in rows[-5:])


def test_standardised_rows_have_the_moments_so_far(tmp_path: Path) -> None:
    pytest.importorskip("river")
    X = np.random.default_rng(0).normal(5.0, 3.0, (20, 2))
    asked, learnt = names_of_example(EXAMPLES / "river_track.py", tmp_path)["standardised"](X)
    for i in range(2, 20):
        for found, earlier in ((asked, X[:i]), (learnt, X[: i + 1])):
            expected = (X[i] - earlier.mean(axis=0)) / earlier.std(axis=0)
            np.testing.assert_allclose(found[i], expected, rtol=1e-9)


def test_models_are_small(tmp_path: Path) -> None:
    printed = run_example("constrained_inputs.py", "--quick", cwd=tmp_path)
    sizes = re.match(r"15 trials, of (\d+) to (\d+) numbers", printed)
    assert sizes is not None and int(sizes[1]) < int(sizes[2]) <= 1000


def test_demo_runs_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A tenth of the digits: networks learn faster.
    X, y = load_digits(return_X_y=True)
    monkeypatch.setattr(sklearn.datasets, "load_digits", lambda **_: (X[::10], y[::10]))
    command = ("demo.py", "--output", "out", "--trials")
    first = run_example(*command, "1", cwd=tmp_path)
    assert "MondrianSampler, seed 0: 1 trials\n" in first
    assert (tmp_path / "out" / "history.png").stat().st_size > 1000
    again = run_example(*command, "2", cwd=tmp_path)
    assert "MondrianSampler, seed 0: 1 trials after 1\n" in again
    done = run_example(*command, "2", cwd=tmp_path)
    assert "MondrianSampler, seed 0: 2 trials already" in done
    assert "each run of 2 trials" in done

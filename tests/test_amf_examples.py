"""The figures of Mourtada2021 in examples/amf run, each in a folder of its own."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from example_runs import EXAMPLES, names_of_example, run_example

FOLDER = EXAMPLES / "amf"
FIGURES = sorted(FOLDER.glob("fig*.py"))


def test_figures_are_there() -> None:
    numbers = [int(script.stem[3:5]) for script in FIGURES]
    assert numbers == [1, 5, 7, 8, 9, 10, 11, 12]


@pytest.mark.parametrize("script", FIGURES, ids=lambda script: script.stem)
def test_figure_is_drawn(script: Path, tmp_path: Path) -> None:
    printed = run_example(script, "--quick", "--output", "pictures/figure.png", cwd=tmp_path)
    assert "Picture in pictures/figure.png" in printed.replace(os.sep, "/")
    picture = (tmp_path / "pictures" / "figure.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 3000


def test_depths_are_printed(tmp_path: Path) -> None:
    printed = run_example(FOLDER / "depths.py", "--quick", cwd=tmp_path)
    header, *rows = printed.splitlines()
    assert header.startswith("n = 30") and len(rows) == 6
    for row in rows[2:]:
        restricted, _, box = (float(cell.split("±")[0]) for cell in row.split("|")[2:5])
        assert restricted < box


def test_rates_are_measured(tmp_path: Path) -> None:
    printed = run_example(FOLDER / "rates.py", "--quick", "--output", "rates.png", cwd=tmp_path)
    rows = [line for line in printed.splitlines() if line.startswith("|")]
    assert len(rows) == 6 and {row.count("|") for row in rows} == {8}
    for row in rows[2:]:
        assert float(row.split("|")[-2].split(" to ")[1]) < 1.0  # the bound holds


@pytest.mark.parametrize("data", ["digits", "breast_cancer", "wine"])
def test_losses_of_sgd_are_those_of_scikit_learn(data: str, tmp_path: Path) -> None:
    names = names_of_example(FOLDER / "fig10_average_losses.py", tmp_path)
    X, y = names["data_set"](data)
    order = np.random.default_rng(0).permutation(len(y))[:150]
    expected = names["losses"](names["ONLINE"]["SGD"](0), X[order], y[order])
    np.testing.assert_allclose(names["sgd_losses"](X[order], y[order]), expected, rtol=1e-9)


def test_lowest_losses_are_those_of_all_later_samples(tmp_path: Path) -> None:
    lowest_from = names_of_example(FOLDER / "fig10_average_losses.py", tmp_path)["lowest_from"]
    rng = np.random.default_rng(1)
    found = set()
    for _ in range(200):
        # Entry i is the average after i + 2 samples.
        average, others = rng.random(4), 0.4 + rng.random((3, 4))
        starts = [i for i in range(4) if all(average[j] < others[:, j].min() for j in range(i, 4))]
        expected = str(starts[0] + 2) if starts else "never"
        assert lowest_from(average, others) == expected
        found.add(expected)
    assert found == {"2", "3", "4", "5", "never"}


@pytest.mark.parametrize(("n_classes", "dirichlet"), [(2, 0.5), (3, 0.01)])
def test_settings_of_the_paper(n_classes: int, dirichlet: float, tmp_path: Path) -> None:
    names = names_of_example(FOLDER / "fig10_average_losses.py", tmp_path)
    X, y = np.zeros((1, 2)), np.zeros(1, dtype=int)
    forest = names["amf_of_the_paper"](0, n_classes=n_classes)
    forest.partial_fit(X, y, classes=range(n_classes))
    after_one = (1.0 + dirichlet) / (1.0 + n_classes * dirichlet)  # Mourtada2021, equation 5
    assert forest.predict_proba(X)[0, 0] == pytest.approx(after_one)
    assert forest.pooling == "arithmetic" and forest.n_estimators == 10


def test_unknown_data_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no data set 'nothing'; there are breast_cancer,"):
        run_example(FOLDER / "fig12_number_of_trees.py", "--data", "nothing", cwd=tmp_path)


def test_pictures_of_the_documentation_are_there_and_small() -> None:
    folder = EXAMPLES.parent / "docs" / "images" / "amf"
    for script in FIGURES:
        assert 3000 < (folder / f"{script.stem}.png").stat().st_size < 150_000

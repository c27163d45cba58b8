"""The figures of Mourtada2021 in examples/amf run, each in a folder of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from example_runs import EXAMPLES, run_example

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


def test_unknown_data_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no data set 'nothing'; there are breast_cancer,"):
        run_example(FOLDER / "fig12_number_of_trees.py", "--data", "nothing", cwd=tmp_path)


def test_pictures_of_the_documentation_are_there_and_small() -> None:
    folder = EXAMPLES.parent / "docs" / "images" / "amf"
    for script in FIGURES:
        assert 3000 < (folder / f"{script.stem}.png").stat().st_size < 150_000

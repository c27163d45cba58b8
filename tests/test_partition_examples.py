"""The examples of Balog2016thesis (densities) and Davies2014 run, each in a folder of its own."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from example_runs import EXAMPLES, run_example

IMAGES = EXAMPLES.parent / "docs" / "images"
FIGURES = [
    script
    for folder in ("partition_kernels", "density")
    for script in sorted((EXAMPLES / folder).glob("fig*.py"))
]
TABLES = [
    EXAMPLES / "partition_kernels" / "preconditioner.py",
    EXAMPLES / "density" / "concentration.py",
]


def test_figures_are_there() -> None:
    assert [script.stem[:5] for script in FIGURES] == [
        *("fig01", "fig02", "fig03", "fig05", "fig06"),
        *("fig21", "fig22", "fig42"),
    ]


@pytest.mark.parametrize("script", FIGURES, ids=lambda script: script.stem)
def test_figure_is_drawn(script: Path, tmp_path: Path) -> None:
    printed = run_example(script, "--quick", "--output", "pictures/figure.png", cwd=tmp_path)
    assert "Picture in pictures/figure.png" in printed.replace(os.sep, "/")
    picture = (tmp_path / "pictures" / "figure.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 3000


@pytest.mark.parametrize("script", TABLES, ids=lambda script: script.stem)
def test_table_is_printed(script: Path, tmp_path: Path) -> None:
    printed = run_example(script, "--quick", cwd=tmp_path)
    rows = [line for line in printed.splitlines() if line.startswith("| ")]
    assert len(rows) > 3
    assert len({row.count("|") for row in rows}) == 1


def test_unknown_data_are_refused(tmp_path: Path) -> None:
    script = EXAMPLES / "partition_kernels" / "fig02_kernel_pca.py"
    with pytest.raises(SystemExit, match="no data set 'nothing'; there are diabetes,"):
        run_example(script, "--name", "nothing", cwd=tmp_path)
    with pytest.raises(SystemExit, match="no file elsewhere"):
        run_example(script, "--name", "bodyfat", "--data", "elsewhere", cwd=tmp_path)


def test_files_of_a_directory_are_used(tmp_path: Path) -> None:
    table = np.random.default_rng(0).random((40, 4))
    with gzip.open(tmp_path / "bodyfat.csv.gz", "wt") as file:
        file.write("label,a,b,c\n" + "\n".join(",".join(map(str, row)) for row in table) + "\n")
    script = EXAMPLES / "partition_kernels" / "fig02_kernel_pca.py"
    options = ("--quick", "--name", "bodyfat", "--data", ".", "--output", "figure.png")
    run_example(script, *options, cwd=tmp_path)
    assert (tmp_path / "figure.png").stat().st_size > 3000


def test_pictures_of_the_documentation_are_there_and_small() -> None:
    for script in FIGURES:
        picture = IMAGES / script.parent.name / f"{script.stem}.png"
        assert 3000 < picture.stat().st_size < 150_000

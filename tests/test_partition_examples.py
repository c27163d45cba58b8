"""The examples of Balog2016thesis (densities) and Davies2014 run, each in a folder of its own."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
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


def _run(script: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(script), *arguments]
    env = os.environ | {"MPLBACKEND": "Agg"}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)


def test_figures_are_there() -> None:
    assert [script.stem[:5] for script in FIGURES] == [
        *("fig01", "fig02", "fig03", "fig05", "fig06"),
        *("fig21", "fig22", "fig42"),
    ]


@pytest.mark.parametrize("script", FIGURES, ids=lambda script: script.stem)
def test_figure_is_drawn(script: Path, tmp_path: Path) -> None:
    done = _run(script, "--quick", "--output", "pictures/figure.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Picture in pictures/figure.png" in done.stdout.replace(os.sep, "/")
    picture = (tmp_path / "pictures" / "figure.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 3000


@pytest.mark.parametrize("script", TABLES, ids=lambda script: script.stem)
def test_table_is_printed(script: Path, tmp_path: Path) -> None:
    done = _run(script, "--quick", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert len(rows) > 3
    assert len({row.count("|") for row in rows}) == 1


def test_unknown_data_are_refused(tmp_path: Path) -> None:
    script = EXAMPLES / "partition_kernels" / "fig02_kernel_pca.py"
    done = _run(script, "--name", "nothing", cwd=tmp_path)
    assert done.returncode != 0
    assert "no data set 'nothing'; there are diabetes," in done.stderr
    done = _run(script, "--name", "bodyfat", "--data", "elsewhere", cwd=tmp_path)
    assert done.returncode != 0
    assert "no file elsewhere" in done.stderr


def test_files_of_a_directory_are_used(tmp_path: Path) -> None:
    table = np.random.default_rng(0).random((40, 4))
    with gzip.open(tmp_path / "bodyfat.csv.gz", "wt") as file:
        file.write("label,a,b,c\n" + "\n".join(",".join(map(str, row)) for row in table) + "\n")
    script = EXAMPLES / "partition_kernels" / "fig02_kernel_pca.py"
    options = ("--quick", "--name", "bodyfat", "--data", ".", "--output", "figure.png")
    done = _run(script, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "figure.png").stat().st_size > 3000


def test_pictures_of_the_documentation_are_there_and_small() -> None:
    for script in FIGURES:
        picture = IMAGES / script.parent.name / f"{script.stem}.png"
        assert 3000 < picture.stat().st_size < 150_000

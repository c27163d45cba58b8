import csv
import json
import sysconfig
from importlib import resources

import numpy as np
import pytest

from mondrian_bo.benchmarks.problems import get_problem
from mondrian_bo.benchmarks.problems.tabular import load_table
from mondrian_bo.benchmarks.tables.corpus import standard_library_docstrings
from mondrian_bo.benchmarks.tables.measure_svm import svm_table
from mondrian_bo.benchmarks.tables.measured import MeasuredTable, write_table

TABLES = resources.files("mondrian_bo.benchmarks") / "tables"
SHAPES = {"svm_grid": (25, 14, 4), "lda_grid": (6, 6, 8)}


def read_rows(name):
    header, *rows = csv.reader((TABLES / f"{name}.csv").read_text().splitlines())
    return header, [[float(cell) for cell in row] for row in rows]


@pytest.mark.parametrize(("name", "shape"), SHAPES.items())
def test_shipped_tables_are_full_grids(name, shape):
    header, rows = read_rows(name)
    assert header[-1] == "seconds"
    assert len({tuple(row[:3]) for row in rows}) == len(rows) == np.prod(shape)
    assert load_table(name).values.shape == shape
    assert all(row[-1] > 0 for row in rows)
    record = json.loads((TABLES / f"{name}.json").read_text())
    assert record["cells"] == len(rows)
    assert record["total_seconds"] == pytest.approx(sum(row[-1] for row in rows), abs=1)


@pytest.mark.parametrize("name", SHAPES)
def test_shipped_tables_are_worth_optimising(name):
    values = np.sort(load_table(name).values.ravel())
    assert np.isfinite(values).all()
    assert values[1] > values[0] > 0  # one best cell
    assert np.mean(values < 1.1 * values[0]) < 0.2
    assert len(np.unique(values)) > len(values) / 2


@pytest.mark.parametrize("name", SHAPES)
def test_problem_looks_up_the_rows_of_the_file(name):
    header, rows = read_rows(name)
    problem = get_problem(name)
    levels = {column: sorted({row[i] for row in rows}) for i, column in enumerate(header[:3])}
    for row in rows[::7]:
        cell = {c: levels[c].index(row[i]) for i, c in enumerate(header[:3])}
        assert problem.function(cell) == row[3]
    assert problem.optimum == min(row[3] for row in rows)
    assert problem.space.cardinality == len(rows)


def test_svm_table_measures_again_what_is_shipped():
    _, rows = read_rows("svm_grid")
    shipped = {tuple(row[:3]): row[3] for row in rows}
    *cell, error, _ = next(svm_table().cells)
    # Other versions of the libraries may break ties between a few digits differently.
    assert error == pytest.approx(shipped[tuple(cell)], abs=0.01)


def test_original_tables_are_read_from_a_directory(tmp_path):
    (tmp_path / "svm_on_grid.csv").write_text(
        "C,alpha,epsilon,error,seconds\n"
        "10.0,0.1,1e-3,0.3,1\n0.1,0.1,1e-3,0.4,1\n0.1,0.2,1e-3,0.2,1\n10.0,0.2,1e-3,0.5,1\n"
    )
    problem = get_problem("svm_grid", tables=tmp_path)
    assert problem.optimum == 0.2
    assert problem.function({"C": 0, "alpha": 1, "epsilon": 0}) == 0.2
    assert problem.function({"C": 1, "alpha": 0, "epsilon": 0}) == 0.3
    assert "original" in problem.description
    with pytest.raises(ValueError, match=r"no table lda_on_grid\.csv"):
        get_problem("lda_grid", tables=tmp_path)


@pytest.mark.parametrize(
    "rows",
    [
        "1,1,0.5,9\n1,2,0.5,9\n2,1,0.5,9\n",  # a cell is missing
        "1,1,0.5,9\n1,1,0.5,9\n",  # a cell is there twice
        "1,1,0.5,9\n1,2,nan,9\n",
    ],
)
def test_a_table_that_is_no_grid_is_refused(tmp_path, rows):
    (tmp_path / "lda_on_grid.csv").write_text("a,b,value,seconds\n" + rows)
    with pytest.raises(ValueError, match="not a full grid"):
        get_problem("lda_grid", tables=tmp_path)


def test_corpus_holds_the_docstrings_in_order_of_files(tmp_path, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    (tmp_path / "b.py").write_text('def f():\n    """Second."""\n')
    (tmp_path / "a.py").write_text('"""First."""\nx = "no docstring"\n')
    (tmp_path / "bad.py").write_text("print 'of another age'\n")
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "c.py").write_text('"""A test."""\n')
    assert standard_library_docstrings() == ["First.", "Second."]


def test_written_table(tmp_path):
    cells = iter([(2.0, 1, 0.5, 0.25), (0.1, 1, 0.123456789123, 0.5)])
    table = MeasuredTable("toy", ("a", "b"), "loss", 2, cells, {"corpus": "none"})
    write_table(table, tmp_path, "a command")
    lines = (tmp_path / "toy.csv").read_text().splitlines()
    assert lines == ["a,b,loss,seconds", "0.1,1,0.12345679,0.5000", "2.0,1,0.5,0.2500"]
    record = json.loads((tmp_path / "toy.json").read_text())
    assert record["command"] == "a command"
    assert record["corpus"] == "none"
    assert (record["cells"], record["total_seconds"]) == (2, 0.8)

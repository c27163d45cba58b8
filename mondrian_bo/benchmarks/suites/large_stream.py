"""A synthetic stream of millions of rows: error, time and memory of a Mondrian forest.

``mondrian-bo bench run --suite large-stream --out DIR`` learns 5 million rows, 100,000 at a time,
with `MondrianForestRegressor.partial_fit`. At 700,000, 2 million and 5 million rows, the sizes of
Lakshminarayanan2016, Table 1, it predicts the next 100,000. There are eight uniform inputs. The
target is Friedman's first function of five of them plus noise of variance 1. One of its waves
moves with the number of rows, by a quarter of the input's range in 5 million. ``--trials`` gives
another number of rows.
"""

from __future__ import annotations

import json
import time
from argparse import Namespace
from typing import Any

import numpy as np
from scipy.stats import norm
from tqdm import tqdm

from mondrian_bo.benchmarks.report.text_table import to_markdown, to_text
from mondrian_bo.benchmarks.suites.speed.memory import array_bytes, resident_bytes
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates import MondrianForestRegressor

N_ROWS = 5_000_000
"""Rows to learn: the largest set of Table 1."""

CHECKS = (700_000, 2_000_000, 5_000_000)
"""Numbers of rows after which the forest predicts, those of Table 1."""

CHUNK = 100_000
"""Rows of a call of `partial_fit`, and rows to predict."""

N_TREES = 10
"""Trees, as in Lakshminarayanan2016, section 5.2."""


def draw(start: int, n: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return the rows from `start` on: inputs of shape (n, 8), and targets."""
    rng = np.random.default_rng([seed, start])
    X = rng.random((n, 8))
    moved = X[:, 0] + 0.25 * (start + np.arange(n)) / N_ROWS
    y = 10.0 * np.sin(np.pi * moved * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
    return X, y + 10.0 * X[:, 3] + 5.0 * X[:, 4] + rng.standard_normal(n)


def measure(n_rows: int, checks: tuple[int, ...], chunk: int, seed: int) -> list[dict[str, Any]]:
    """Learn a stream and return a record for each check: scores, seconds and memory.

    Parameters
    ----------
    n_rows : int
        Rows to learn.
    checks : tuple of int
        Numbers of rows, multiples of `chunk`, after which the next rows are predicted.
    chunk : int
        Rows of a call, and rows to predict.
    seed : int
        Seed of the stream and of the forest.
    """
    forest = MondrianForestRegressor(
        N_TREES, min_samples_split=10, bounds=[[0.0, 1.0]] * 8, random_state=seed
    )
    records, seconds, slowest = [], 0.0, 0.0
    for start in tqdm(range(0, n_rows, chunk), desc="large-stream"):
        X, y = draw(start, chunk, seed)
        begun = time.perf_counter()
        forest.partial_fit(X, y)
        own = time.perf_counter() - begun
        seconds, slowest = seconds + own, max(slowest, own)
        n = start + chunk
        if n not in checks and n < n_rows:
            continue
        X, y = draw(n, chunk, seed)
        begun = time.perf_counter()
        mean, std = forest.predict(X, return_std=True)
        resident = resident_bytes()
        records.append(
            {
                "rows": n,
                "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
                "nlpd": float(-np.mean(norm.logpdf(y, mean, std))),
                "coverage": float(np.mean(np.abs(y - mean) < norm.ppf(0.95) * std)),
                "seconds": seconds,
                "slowest": slowest,
                "predict": time.perf_counter() - begun,
                "arrays": array_bytes(forest),
                "resident": resident,
            }
        )
    return records


def run(arguments: Namespace) -> None:
    """Run the experiment with one seed; write ``DIR/large-stream.json`` and ``.md``, and print.

    Parameters
    ----------
    arguments : argparse.Namespace
        The parsed arguments of ``mondrian-bo bench run``; `trials` is the number of rows, a
        multiple of 100,000.
    """
    n_rows = N_ROWS if arguments.trials is None else arguments.trials
    if n_rows % CHUNK != 0 or n_rows < CHUNK:
        raise ValueError(f"--trials must be a multiple of {CHUNK}, got {n_rows}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    records = measure(n_rows, CHECKS, CHUNK, seed=0)
    (arguments.out / "large-stream.json").write_text(json.dumps(records, indent=1) + "\n")
    table = summary(records)
    (arguments.out / "large-stream.md").write_text(to_markdown(*table) + "\n")
    print(to_text(*table))


def summary(records: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of the table."""
    header = ["rows", "RMSE", "NLPD", "90 %", "learning, s", "slowest 100,000, s"]
    header += ["predicting 100,000, s", "arrays, GB", "process, GB"]
    rows = []
    for record in records:
        resident = record["resident"]
        rows.append(
            [
                f"{record['rows']:,}",
                f"{record['rmse']:.3f}",
                f"{record['nlpd']:.3f}",
                f"{record['coverage']:.1%}",
                *(f"{record[name]:.1f}" for name in ("seconds", "slowest", "predict")),
                f"{record['arrays'] / 1e9:.2f}",
                "" if resident is None else f"{resident / 1e9:.2f}",
            ]
        )
    return header, rows

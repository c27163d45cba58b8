"""Coverage during a search: how often the next trial lies in its prediction interval.

``python -m mondrian_bo.benchmarks.coverage --problems shifted_hartmann6,mixed6 --seeds 8`` prints a
table. For each part of the run it has the shares of the trials whose noise-free value lies within
0.674 and 1.645 predicted standard deviations of the predicted mean, and the root mean square of the
error in standard deviations. Calibrated normal predictions give 50 %, 90 % and 1.

With ``--anywhere`` it predicts random points of the space after the search instead, and compares
the standard deviation with half the width of the central 68 % interval.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from scipy.stats import norm

from mondrian_bo.benchmarks.harness.optimizer_run import OptimizerRun
from mondrian_bo.benchmarks.problems import get_problem
from mondrian_bo.benchmarks.report.text_table import to_markdown
from mondrian_bo.shared.array_types import FloatArray

_LEVELS = (0.5, 0.9)
"""Nominal coverages of the two intervals: the middle half, and nearly all."""

_PARTS = ((0.05, 0.25), (0.25, 0.5), (0.5, 1.0))
"""Parts of the run, as shares of the budget, without the first trials, which no model suggests."""


_N_POINTS = 200
"""Number of random points that are predicted after a search, our choice."""

_WIDE = 0.3
"""Standard deviations above this share of the range of the trials are wide, our choice."""


def run(name: str, seed: int, n_trials: int) -> FloatArray:
    """Search with the default optimizer and compare each trial with what was predicted for it.

    The seed is that of the problem and of the search. Returns the errors in predicted standard
    deviations, shape (n_trials,); NaN for the first trial.
    """
    search = OptimizerRun.of(get_problem(name), seed)
    errors = np.full(n_trials, np.nan)
    search.step()
    for number in range(1, n_trials):
        params = search.optimizer.ask()
        mean, std = search.optimizer.predict(params)
        value = search.step(params).value
        with np.errstate(over="ignore"):  # A deviation of 0 gives an infinite error.
            errors[number] = (value - mean[0]) / max(std[0], np.finfo(np.float64).tiny)
    return errors


def run_anywhere(name: str, seed: int, n_trials: int) -> FloatArray:
    """Search with the default optimizer, then predict random points of the space.

    Returns
    -------
    float64 array of shape (200, 3)
        Absolute errors of the mean in standard deviations, and in half widths of the central 68 %
        interval; standard deviations in ranges of the values of the trials.
    """
    problem = get_problem(name)
    function = problem.instance(seed)
    search = OptimizerRun.of(problem, seed)
    told = [search.step().observed for _ in range(n_trials)]
    rows = problem.space.sample(_N_POINTS, np.random.default_rng([seed, 8]))
    truth = np.array([function(problem.space.from_unit(row)) for row in rows])
    mean, std = (one[:, 0] for one in search.optimizer.predict_rows(rows))
    ends = search.optimizer.predict_quantiles(rows, np.asarray(norm.cdf([-1.0, 1.0])))[:, 0]
    half = 0.5 * np.ptp(ends, axis=1)
    # An interval of width 0 is wrong by far, not infinitely.
    widths = np.maximum([std, half], 1e-9 * np.ptp(told))
    return np.column_stack([*(np.abs(truth - mean) / widths), std / np.ptp(told)])


def anywhere_table(errors: dict[str, FloatArray]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows from results of `run_anywhere`, shape (n, 3), by problem."""
    header = ["problem", "wide", "std: 90%", "median", "68%: 90%", "median"]
    header += ["wide std: 90%", "median", "wide 68%: 90%", "median"]
    rows = []
    for name, found in {**errors, "all": np.concatenate(list(errors.values()))}.items():
        is_wide = found[:, 2] > _WIDE
        cells = [name, f"{is_wide.mean():.0%}"]
        for part in (found, found[is_wide]):
            for column in part[:, :2].T:
                if len(column) == 0:
                    cells += ["", ""]
                    continue
                cells.append(f"{np.mean(column <= norm.ppf(0.95)):.0%}")
                cells.append(f"{np.median(column):.2g}")
        rows.append(cells)
    return header, rows


def table(errors: dict[str, FloatArray]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows from errors of shape (runs, trials) by problem."""
    header = ["problem"]
    for first, last in _PARTS:
        header += [f"{level:.0%}, {first:.0%} to {last:.0%}" for level in _LEVELS] + ["RMS"]
    rows = []
    for name, runs in errors.items():
        cells = [name]
        for first, last in _PARTS:
            part = np.abs(runs[:, round(first * runs.shape[1]) : round(last * runs.shape[1])])
            for level in _LEVELS:
                cells.append(f"{np.mean(part <= norm.ppf(0.5 + 0.5 * level)):.0%}")
            cells.append(f"{np.sqrt(np.mean(part**2)):.2g}")
        rows.append(cells)
    return header, rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for on the command line."""
    from joblib import Parallel, delayed
    from tqdm import tqdm

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", required=True, help="names, separated by commas")
    parser.add_argument("--seeds", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--trials", type=int, default=200, help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default: 1)")
    parser.add_argument("--anywhere", action="store_true", help="random points after the search")
    options = parser.parse_args(arguments)
    names = options.problems.split(",")
    todo = [(name, seed, options.trials) for name in names for seed in range(options.seeds)]
    workers = Parallel(n_jobs=options.jobs, return_as="generator")
    job = delayed(run_anywhere if options.anywhere else run)
    runs = list(tqdm(workers(job(*one) for one in todo), total=len(todo)))
    if options.anywhere:
        parts = np.array(runs).reshape(len(names), -1, 3)
        print(to_markdown(*anywhere_table(dict(zip(names, parts, strict=True)))))
        return
    errors = np.array(runs).reshape(len(names), options.seeds, options.trials)
    print(to_markdown(*table(dict(zip(names, errors, strict=True)))))


if __name__ == "__main__":
    main()

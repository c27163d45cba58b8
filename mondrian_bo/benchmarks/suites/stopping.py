"""Stopping: the regret that the model predicts when it stops a search, and the true regret.

``mondrian-bo bench run --suite stopping --seeds 10 --jobs 2 --out DIR`` runs the default search to
the end of its budget on the default suite's problems whose optimum is known. Every five trials it
stores quantiles of the predicted regret
(:mod:`mondrian_bo.optimizer.remaining_gain`) and the true one. The rule of
:class:`mondrian_bo.MondrianTerminator` is then applied to these records, with tolerances of 1 % and
5 % of a problem's scale: the difference between the median of random points and the optimum.
``DIR/stopping.jsonl.gz`` keeps the records; finished runs are not
run again, nor are those of an archive that ``--known`` names.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from mondrian_bo.benchmarks.problems import SUITES, get_problem
from mondrian_bo.benchmarks.report.text_table import publish
from mondrian_bo.benchmarks.suites.archived_runs import archived_runs
from mondrian_bo.optimizer.optimizer import MondrianOptimizer

TOLERANCES = (0.01, 0.05)
"""Tolerances as shares of a problem's scale, our choice: a strict one and a loose one."""

PROBABILITY = 0.05
"""Promised probability of a larger regret, the terminator's default."""

_LEVELS = (0.5, 0.9, 0.95, 0.99)
"""Levels of the stored quantiles of the regret; the rule needs the third."""

_FIRST, _INTERVAL, _PATIENCE = 20, 5, 30
"""The terminator's defaults, in trials."""

_N_DRAWS = 512
"""Draws of an estimate, as the terminator has."""

_N_SCALE = 500
"""Number of random points that determine a problem's scale, our choice."""

ARCHIVE = "stopping.jsonl.gz"
"""Name of the file of records."""


def problems() -> list[str]:
    """Return the names of the default suite's problems with a known optimum."""
    return [name for name in SUITES["default"].problems if get_problem(name).optimum is not None]


def scale(name: str) -> float:
    """Return the median value of random points minus the optimum, on the instance of seed 0."""
    problem = get_problem(name)
    function, space = problem.instance(0), problem.space
    rows = space.sample(_N_SCALE, np.random.default_rng(5))
    assert problem.optimum is not None
    return float(np.median([function(space.from_unit(row)) for row in rows]) - problem.optimum)


def one_run(name: str, seed: int, n_trials: int | None = None) -> dict[str, Any]:
    """Search a problem and return the record of the run.

    Returns
    -------
    dict
        ``problem``, ``seed``, and ``estimates``: for every fifth trial their number, the true
        regret of the trial with the best predicted mean, and the mean and quantiles of the
        predicted regret.
    """
    problem = get_problem(name)
    assert problem.optimum is not None
    function = problem.instance(seed)
    optimizer = MondrianOptimizer(problem.space, seed=[seed, 7])
    true: dict[bytes, float] = {}
    estimates = []
    for number in range(problem.budget if n_trials is None else n_trials):
        params = optimizer.ask()
        value = function(params)
        optimizer.tell(params, problem.observe(value, seed, number))
        true[problem.space.to_unit(params).tobytes()] = value
        if number + 1 >= _FIRST and (number + 1) % _INTERVAL == 0:
            gain = optimizer.remaining_gain(_N_DRAWS)
            assert gain is not None
            regret = true[gain.row.tobytes()] - problem.optimum
            predicted = [gain.regrets.mean(), *np.quantile(gain.regrets, _LEVELS)]
            numbers = [float(f"{one:.4g}") for one in (regret, *predicted)]
            estimates.append([number + 1, *numbers])
    return {"problem": name, "seed": seed, "estimates": estimates}


def stop_of(estimates: list[list[float]], tolerance: float) -> tuple[int, float] | None:
    """Return the number of trials and the true regret when the rule stops a run; None if never."""
    since: int | None = None
    for n_trials, regret, *_, bound, _ in estimates:
        if bound > tolerance:
            since = None
            continue
        since = int(n_trials) if since is None else since
        if n_trials - since >= _PATIENCE:
            return int(n_trials), regret
    return None


def run(arguments: Namespace) -> None:
    """Run the measurement, archive it and print the table, which goes to ``DIR/stopping.md`` too.

    The arguments are those of :func:`mondrian_bo.benchmarks.suites.archived_runs.archived_runs`.
    """
    records = archived_runs(arguments, ARCHIVE, problems(), _records, "stopping")
    publish(arguments.out / "stopping.md", *summary(records))


def _records(name: str, seed: int, n_trials: int | None) -> list[dict[str, Any]]:
    return [one_run(name, seed, n_trials)]


def summary(records: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return a row for each problem: runs that stopped, trials until then, promises kept."""
    header = ["problem", "at the end"]
    for tolerance in TOLERANCES:
        header += [f"{tolerance:.0%}: stopped", "trials", "kept"]
    rows = []
    for name in dict.fromkeys(record["problem"] for record in records):
        runs = [record["estimates"] for record in records if record["problem"] == name]
        size = scale(name)
        ended = sum(run[-1][1] <= TOLERANCES[0] * size for run in runs)
        row = [name, f"{ended}/{len(runs)}"]
        for tolerance in TOLERANCES:
            stops = [stop for one in runs if (stop := stop_of(one, tolerance * size)) is not None]
            kept = sum(regret <= tolerance * size for _, regret in stops)
            trials = f"{np.mean([n for n, _ in stops]):.0f}" if stops else "-"
            row += [f"{len(stops)}/{len(runs)}", trials, f"{kept}/{len(stops)}" if stops else "-"]
        rows.append(row)
    return header, rows

"""Stopping: the regret that the model predicts when it stops a search, and the true regret.

``mondrian-bo bench run --suite stopping --seeds 10 --jobs 2 --out DIR`` runs the default search to
the end of its budget on the default suite's problems whose optimum is known. Every five trials it
stores quantiles of the regret that the model believes
(:mod:`mondrian_bo.optimizer.remaining_gain`) and the true one. The rule of
:class:`mondrian_bo.MondrianTerminator` is then applied to these records, with tolerances of 1 % and
5 % of a problem's scale: the difference between the median of random points and the optimum.
``DIR/stopping.jsonl.gz`` keeps the records; finished runs are not
run again, nor are those of an archive that ``--known`` names.
"""

from __future__ import annotations

import gzip
import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from mondrian_bo.benchmarks.problems import SUITES, get_problem
from mondrian_bo.benchmarks.report.text_table import publish
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
        regret of the trial that the model believes best, the mean of the regret that it believes,
        and quantiles of it.
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
            believed = [gain.regrets.mean(), *np.quantile(gain.regrets, _LEVELS)]
            numbers = [float(f"{one:.4g}") for one in (regret, *believed)]
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

    Parameters
    ----------
    arguments : argparse.Namespace
        The parsed arguments of ``mondrian-bo bench run``, of which ``seeds``, ``trials``, ``jobs``,
        ``known`` and ``out`` count.
    """
    from joblib import Parallel, delayed

    arguments.out.mkdir(parents=True, exist_ok=True)
    log = arguments.out / ARCHIVE
    done = {
        (record["problem"], record["seed"]): record
        for path in [*arguments.known, log]
        for record in _read(path)
    }
    names = problems()
    todo = [(n, s) for s in range(arguments.seeds) for n in names if (n, s) not in done]
    workers = Parallel(n_jobs=arguments.jobs, return_as="generator_unordered")
    results = workers(delayed(one_run)(*one, arguments.trials) for one in todo)
    with gzip.open(log, "at", encoding="utf-8") as stream:
        for record in tqdm(results, total=len(todo), desc="stopping"):
            done[record["problem"], record["seed"]] = record
            stream.write(json.dumps(record) + "\n")
            stream.flush()
    wanted = [done[n, s] for n in names for s in range(arguments.seeds)]
    table = summary(wanted)
    publish(arguments.out / "stopping.md", *table)


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the records of an archive; none if there is no file."""
    if not path.is_file():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


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

"""Stopping: the regret that the model predicts when it stops a search, and the true regret.

``mondrian-bo bench run --suite stopping --seeds 10 --jobs 2 --out DIR`` runs the default search to
the end of its budget on the default suite's problems whose optimum is known. Every five trials it
stores quantiles of the predicted regret (:mod:`mondrian_bo.optimizer.stopping.remaining_gain`)
under several rules, and the true one. Each rule is then applied to these records, with tolerances
of 1 % and 5 % of a problem's scale: the difference between the median of random points and the
optimum.
``DIR/stopping.jsonl.gz`` keeps the records; finished runs are not run again, nor are those of an
archive that ``--known`` names. The suite ``stopping_bbob`` does the same on functions of COCO's
suite ``bbob``.
"""

from __future__ import annotations

from argparse import Namespace
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import binomtest

from mondrian_bo.benchmarks.harness.optimizer_run import OptimizerRun
from mondrian_bo.benchmarks.harness.random_points import random_values
from mondrian_bo.benchmarks.harness.run_log import archived_runs
from mondrian_bo.benchmarks.problems import SUITES, get_problem
from mondrian_bo.benchmarks.report.text_table import publish
from mondrian_bo.integrations.optuna.terminator import default_patience
from mondrian_bo.optimizer.stopping.cautious_model import CAREFUL, Caution

TOLERANCES = (0.01, 0.05)
"""Tolerances as shares of a problem's scale, our choice: a strict one and a loose one."""

PROBABILITY = 0.05
"""Promised probability of a larger regret, the terminator's default."""

RULES = {
    "the search's model": Caution(1.0, surprise=False, branches=False, structure=False),
    "lengthscales x 0.5, no structure": Caution(0.5, structure=False),
    "lengthscales x 0.5, no branches": Caution(0.5, branches=False),
    "lengthscales x 0.5, no surprise": Caution(0.5, surprise=False),
    "lengthscales x 0.5": Caution(0.5),
    "lengthscales x 0.4": Caution(0.4),
    "lengthscales x 0.33": Caution(0.33),
}
"""Rules that are compared: the model of the search, and careful ones with and without a part."""

(TERMINATOR,) = (name for name, caution in RULES.items() if caution == CAREFUL)
"""Name of the terminator's rule."""

_PATIENCES = (20, 50, None)
"""Patiences that are compared, in trials; None is the terminator's."""

_FIRST, _INTERVAL = 20, 5
"""The terminator's defaults, in trials."""

_N_DRAWS = 512
"""Draws of an estimate, as the terminator has."""

_N_CHOSEN_ON = 4
"""Instances of each function of BBOB that the rule was chosen on."""

ARCHIVE, BBOB_ARCHIVE = "stopping.jsonl.gz", "stopping_bbob.jsonl.gz"
"""Names of the files of records."""


def problems() -> list[str]:
    """Return the names of the default suite's problems with a known optimum."""
    return [name for name in SUITES["default"].problems if get_problem(name).optimum is not None]


def scale(name: str) -> float:
    """Return the median value of random points minus the optimum, on the instance of seed 0."""
    problem = get_problem(name)
    assert problem.optimum is not None
    return float(np.median(random_values(problem.space, problem.instance(0))) - problem.optimum)


def one_run(name: str, seed: int, n_trials: int | None = None) -> dict[str, Any]:
    """Search a problem and return the record of the run.

    Returns
    -------
    dict
        ``problem``, ``seed``; ``estimates``: for every fifth trial their number, and the true
        regret of the trial with the best predicted mean; ``bounds``: by the name of each rule, the
        regret at these trials that it promises.
    """
    problem = get_problem(name)
    assert problem.optimum is not None
    search = OptimizerRun.of(problem, seed)
    true: dict[bytes, float] = {}
    estimates: list[tuple[int, float]] = []
    bounds: dict[str, list[float]] = {rule: [] for rule in RULES}
    for number in range(problem.budget if n_trials is None else n_trials):
        trial = search.step()
        true[problem.space.to_unit(trial.params).tobytes()] = trial.value
        if number + 1 < _FIRST or (number + 1) % _INTERVAL:
            continue
        for rule, caution in RULES.items():
            gain = search.optimizer.remaining_gain(_N_DRAWS, caution)
            assert gain is not None
            # The trial is the same under all rules.
            best = gain.row
            bounds[rule].append(_rounded(np.quantile(gain.regrets, 1.0 - PROBABILITY)))
        estimates.append((number + 1, _rounded(true[best.tobytes()] - problem.optimum)))
    return {"problem": name, "seed": seed, "estimates": estimates, "bounds": bounds}


def _rounded(number: float) -> float:
    return float(f"{number:.4g}")


def stop_of(
    record: dict[str, Any], tolerance: float, rule: str = TERMINATOR, patience: int | None = None
) -> tuple[int, float] | None:
    """Return the number of trials and the true regret when a rule stops a run; None if never."""
    if patience is None:
        patience = default_patience(get_problem(record["problem"]).space.n_dimensions)
    since = None
    for (n_trials, regret), bound in zip(record["estimates"], record["bounds"][rule], strict=True):
        if bound > tolerance:
            since = None
            continue
        since = n_trials if since is None else since
        if n_trials - since >= patience:
            return n_trials, regret
    return None


def run(arguments: Namespace) -> None:
    """Run the measurement, archive it and print two tables.

    They go to ``DIR/stopping.md`` and ``DIR/stopping_rules.md`` too.

    The arguments are those of :func:`mondrian_bo.benchmarks.harness.run_log.archived_runs`.
    """
    _run(arguments, ARCHIVE, problems(), "stopping")


def run_bbob(arguments: Namespace) -> None:
    """Do the same on BBOB's functions of five and ten inputs, as the suite ``stopping_bbob``."""
    names = [name for name in SUITES["bbob"].problems if name.endswith(("_d5", "_d10"))]
    _run(arguments, BBOB_ARCHIVE, names, "stopping_bbob")


def _run(arguments: Namespace, archive: str, names: list[str], label: str) -> None:
    records = archived_runs(arguments, archive, names, _records, label)
    publish(arguments.out / f"{label}.md", *summary(records))
    publish(arguments.out / f"{label}_rules.md", *comparison(records))


def _records(name: str, seed: int, n_trials: int | None) -> list[dict[str, Any]]:
    return [one_run(name, seed, n_trials)]


def summary(records: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return a row for each problem, each part and all: runs that stopped, trials, kept promises.

    Parts are the halves of the default suite, or the instances of BBOB that the rule was chosen on
    and the others. "Trials" is their mean number until the stop. Parts and all have Wilson's 95 %
    interval of the share of kept promises.
    """
    header = ["problem", "at the end"]
    for tolerance in TOLERANCES:
        header += [f"{tolerance:.0%}: stopped", "trials", "kept"]
    sizes = {name: scale(name) for name in dict.fromkeys(record["problem"] for record in records)}
    groups = {name: [run for run in records if run["problem"] == name] for name in sizes}
    groups |= {**_parts(records), "all": records}
    rows = []
    for group, runs in groups.items():
        strict = TOLERANCES[0]
        ended = sum(run["estimates"][-1][1] <= strict * sizes[run["problem"]] for run in runs)
        row = [group, f"{ended}/{len(runs)}"]
        for tolerance in TOLERANCES:
            row += _cells(runs, sizes, tolerance, TERMINATOR, None, group not in sizes)
        rows.append(row)
    return header, rows


def comparison(records: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return a row for each part of the runs, rule and patience, as in :func:`summary`."""
    header = ["runs", "rule", "patience"]
    for tolerance in TOLERANCES:
        header += [f"{tolerance:.0%}: stopped", "trials", "kept"]
    sizes = {name: scale(name) for name in dict.fromkeys(record["problem"] for record in records)}
    rows = []
    for part, runs in _parts(records).items():
        for rule, patience in product(RULES, _PATIENCES):
            row = [part, rule, "default" if patience is None else str(patience)]
            for tolerance in TOLERANCES:
                row += _cells(runs, sizes, tolerance, rule, patience, True)
            rows.append(row)
    return header, rows


def _parts(records: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the runs that the rule was chosen on, and the others, by name."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for record in sorted(records, key=lambda one: one["seed"]):
        name = record["problem"]
        if name in SUITES["bbob"].problems:
            part = "first instances" if record["seed"] < _N_CHOSEN_ON else "further instances"
        else:
            part = get_problem(name).half
        parts.setdefault(part, []).append(record)
    return parts


def _cells(
    records: list[dict[str, Any]],
    sizes: dict[str, float],
    tolerance: float,
    rule: str,
    patience: int | None,
    with_interval: bool,
) -> list[str]:
    """Return how many runs stop, after how many trials, and how many of them keep the promise."""
    trials, n_kept = [], 0
    for record in records:
        allowed = tolerance * sizes[record["problem"]]
        stop = stop_of(record, allowed, rule, patience)
        if stop is not None:
            trials.append(stop[0])
            n_kept += stop[1] <= allowed
    n = len(trials)
    if n == 0:
        return [f"0/{len(records)}", "-", "-"]
    kept = f"{n_kept}/{n}"
    if with_interval:
        lower, upper = wilson_interval(n_kept, n)
        kept += f" = {n_kept / n:.0%} ({lower:.0%} to {upper:.0%})"
    return [f"{n}/{len(records)}", f"{np.mean(trials):.0f}", kept]


def wilson_interval(n_successes: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a probability, from n >= 1 trials."""
    interval = binomtest(n_successes, n).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)

"""Fidelities: the best value at the target against the cost of all trials.

``mondrian-bo bench run --suite fidelities --seeds 10 --jobs 2 --out DIR`` searches the problems of
:mod:`mondrian_bo.benchmarks.problems.fidelities` until the cost of 30 trials at the target is
spent. ``DIR/fidelities.jsonl.gz`` keeps the runs; finished ones are not run again, nor are those of
an archive that ``--known`` names. The time of suggestions does not count.
"""

from __future__ import annotations

import math
import warnings
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.trial import Trial, TrialState
from scipy.stats import rankdata, spearmanr

from mondrian_bo.benchmarks.harness.methods import (
    Method,
    hyperband,
    mondrian,
    mondrian_pruner,
    random_search,
    tpe,
)
from mondrian_bo.benchmarks.harness.random_points import N_POINTS, new_generator
from mondrian_bo.benchmarks.harness.run_log import archived_runs
from mondrian_bo.benchmarks.problems.fidelities import (
    FIDELITY,
    PROBLEMS,
    FidelityProblem,
    get_fidelity_problem,
)
from mondrian_bo.benchmarks.report.paired_tests import SIGNIFICANCE, wilcoxon_p_value
from mondrian_bo.benchmarks.report.text_table import to_markdown, to_text
from mondrian_bo.shared.array_types import FloatArray

BUDGET = 30.0
"""Cost of a run, in mean costs of a trial at the target: our choice."""

_LOOKED_AT = (5.0, 10.0, 30.0)
"""Costs at which the best values are compared, our choice."""

_MOST_TRIALS = 1000
"""Largest number of trials of a run, our choice."""

_SHARES = (0.0, 0.1, 0.3)
"""Fidelities whose values are compared with those at the target, as shares of the range. Of two
fidelities all these are the lower one."""

ARCHIVE = "fidelities.jsonl.gz"
"""Name of the file of runs."""

REFERENCE = "mondrian"
"""The method that the others are compared with."""

WITH_FIDELITY = "mondrian_fidelity"
"""The method that suggests the fidelity. The trials of the others run at the target."""


METHODS: dict[str, Method] = {
    WITH_FIDELITY: Method(
        partial(mondrian, fidelity=FIDELITY, cost="cost"), None, "`MondrianSampler(fidelity=)`"
    ),
    REFERENCE: Method(mondrian, None, "`MondrianSampler()`"),
    "tpe": Method(tpe, None, "TPE"),
    "random": Method(random_search, None, "random"),
    "mondrian_pruner": Method(mondrian, mondrian_pruner, "`MondrianSampler()`, `MondrianPruner`"),
    "tpe_hyperband": Method(tpe, hyperband, "TPE, Hyperband"),
}
"""The compared methods by name; all have their default settings."""


def search(problem: FidelityProblem, name: str, seed: int, method: str) -> dict[str, Any]:
    """Search a problem until the budget is spent.

    Returns
    -------
    dict
        ``costs`` spent when a trial at the target improved on all before, its ``values``, and the
        number of trials, ``n_trials``.
    """
    target = problem.fidelity.high
    study = METHODS[method].new_study(name, seed, int(target))
    spent, best = 0.0, math.inf
    costs: list[float] = []
    values: list[float] = []
    n_trials = 0
    while spent < BUDGET and n_trials < _MOST_TRIALS:
        trial = study.ask()
        n_trials += 1
        params = {one: _suggest(trial, one, problem.space[one]) for one in problem.space}
        params[FIDELITY] = target
        if method == WITH_FIDELITY:
            params[FIDELITY] = _suggest(trial, FIDELITY, problem.fidelity)
        reports, cost = problem.reports(params), problem.cost(params)
        state, value = TrialState.COMPLETE, float(reports[-1])
        if METHODS[method].pruner is not None:
            for step, report in enumerate(reports.tolist()):
                trial.report(report, step)
                if math.isnan(report) or trial.should_prune():
                    state, cost = TrialState.PRUNED, cost * (step + 1) / len(reports)
                    break
        elif math.isnan(value):
            # A training is stopped where it diverges.
            cost *= (1 + int(np.argmax(np.isnan(reports)))) / len(reports)
            state = TrialState.FAIL
        spent += cost
        trial.set_user_attr("cost", cost)
        if state != TrialState.COMPLETE:
            study.tell(trial, state=state)
            continue
        study.tell(trial, value)
        if params[FIDELITY] == target and value < best and spent <= BUDGET:
            best = value
            costs.append(round(spent, 4))
            values.append(float(f"{value:.8g}"))
    return {"costs": costs, "values": values, "n_trials": n_trials}


def _suggest(trial: Trial, name: str, distribution: BaseDistribution) -> Any:
    return trial._suggest(name, distribution)


def runs_of(name: str, seed: int, n_trials: int | None = None) -> list[dict[str, Any]]:
    """Search a problem with all its methods; `n_trials` does not count."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    problem = get_fidelity_problem(name)
    records = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in methods_of(name):
            found = search(problem, name, seed, method)
            records.append({"problem": name, "seed": seed, "method": method, **found})
    return records


def methods_of(name: str) -> list[str]:
    """Return the methods for a problem: those with a pruner if its trials report steps."""
    problem = get_fidelity_problem(name)
    middle = {one: _middle(distribution) for one, distribution in problem.space.items()}
    has_steps = len(problem.reports({**middle, FIDELITY: problem.fidelity.high})) > 1
    return [one for one, method in METHODS.items() if has_steps or method.pruner is None]


def _middle(distribution: Any) -> Any:
    middle = 0.5 * (distribution.low + distribution.high)
    return int(middle) if isinstance(distribution.low, int) else middle


@cache
def _random_values(name: str, share: float = 1.0) -> FloatArray:
    """Return the values of random points at a share of the way to the target, NaN where failed."""
    problem, rng = get_fidelity_problem(name), new_generator()
    low, high = problem.fidelity.low, problem.fidelity.high
    fidelity: float = low + share * (high - low)
    if isinstance(problem.fidelity, IntDistribution):
        fidelity = round(fidelity)
    values = []
    for _ in range(N_POINTS):
        params = {one: _draw(space, rng) for one, space in problem.space.items()}
        values.append(float(problem.reports({**params, FIDELITY: fidelity})[-1]))
    return np.array(values)


def scale(name: str) -> float:
    """Return the median of random points minus the optimum, at the target."""
    return float(np.nanmedian(_random_values(name))) - get_fidelity_problem(name).optimum


def correlations(names: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return rank correlations of values with those at the target, over random points."""
    rows = []
    for name in names:
        target = _random_values(name)
        cells = []
        for share in _SHARES:
            values = _random_values(name, share)
            known = ~np.isnan(values + target)
            cells.append(f"{spearmanr(values[known], target[known]).statistic:.2f}")
        rows.append([name, *cells])
    shares = ["the lowest fidelity", *(f"{share:.0%} of the range" for share in _SHARES[1:])]
    return ["rank correlation with the target, at", *shares], rows


def _draw(distribution: Any, rng: np.random.Generator) -> Any:
    low, high = distribution.low, distribution.high
    is_integer = isinstance(distribution, IntDistribution)
    return int(rng.integers(low, high + 1)) if is_integer else float(rng.uniform(low, high))


def regret(record: Mapping[str, Any], cost: float) -> float:
    """Return the normalised regret of a run when a cost is spent; 1 before the first value."""
    found = [v for c, v in zip(record["costs"], record["values"], strict=True) if c <= cost]
    if not found:
        return 1.0
    name = record["problem"]
    gap = min(found) - get_fidelity_problem(name).optimum
    return float(min(max(gap, 0.0) / scale(name), 1.0))


def run(arguments: Namespace) -> None:
    """Run the measurement, archive it and print the tables, which go to ``DIR/fidelities.md``.

    The arguments are those of :func:`mondrian_bo.benchmarks.harness.run_log.archived_runs`,
    and ``half``, of the problems.
    """
    names = [one for one in PROBLEMS if arguments.half in (None, get_fidelity_problem(one).half)]
    records = archived_runs(arguments, ARCHIVE, names, runs_of, "fidelities")
    tables = [overall(records), *(by_problem(records, cost) for cost in _LOOKED_AT)]
    tables.append(correlations(names))
    text = "\n\n".join(to_markdown(*table) for table in tables)
    (arguments.out / "fidelities.md").write_text(text + "\n", encoding="utf-8")
    print("\n\n".join(to_text(*table) for table in tables))


def _regrets(records: list[dict[str, Any]], cost: float) -> dict[tuple[str, str], FloatArray]:
    """Return the regrets of all seeds by problem and method."""
    found: dict[tuple[str, str], list[float]] = {}
    for one in records:
        found.setdefault((one["problem"], one["method"]), []).append(regret(one, cost))
    return {key: np.array(values) for key, values in found.items()}


def by_problem(records: list[dict[str, Any]], cost: float) -> tuple[list[str], list[list[str]]]:
    """Return a row for each problem: mean and standard deviation of the regrets in percent."""
    regrets = _regrets(records, cost)
    rows = []
    for name in dict.fromkeys(problem for problem, _ in regrets):
        label = name + "*" * (get_fidelity_problem(name).half == "held-out")
        cells = [
            f"{100 * found.mean():.2g} ± {100 * found.std():.2g}"
            if (found := regrets.get((name, one))) is not None
            else ""
            for one in METHODS
        ]
        rows.append([label, *cells])
    header = [f"regret in % at cost {cost:.0f}", *(one.description for one in METHODS.values())]
    return header, rows


def overall(records: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return a row for each method.

    For each cost: the mean rank among the methods that all problems have, and the numbers of
    problems on which the method is significantly better and worse than `REFERENCE` (Wilcoxon's
    signed-rank test, two-sided, 5 %).
    """
    header = ["method", "problems"]
    rows = {one: [METHODS[one].description] for one in METHODS}
    for cost in _LOOKED_AT:
        header += [f"mean rank at {cost:.0f}", "better, worse"]
        regrets = _regrets(records, cost)
        names = list(dict.fromkeys(problem for problem, _ in regrets))
        shared = [one for one in METHODS if all((name, one) in regrets for name in names)]
        ranks = [
            rankdata([regrets[name, one] for one in shared], axis=0).mean(axis=1) for name in names
        ]
        for one in METHODS:
            own = [name for name in names if (name, one) in regrets]
            tests = [_compare(regrets[name, one], regrets[name, REFERENCE]) for name in own]
            if cost == _LOOKED_AT[0]:
                rows[one].append(str(len(own)))
            rank = f"{np.mean(ranks, axis=0)[shared.index(one)]:.2f}" if one in shared else ""
            counts = f"{tests.count(1)}, {tests.count(-1)}"
            rows[one] += [rank, "" if one == REFERENCE else counts]
    return header, list(rows.values())


def _compare(regrets: FloatArray, reference: FloatArray) -> int:
    """Return 1 if regrets are significantly smaller than others, -1 if larger, and 0 otherwise."""
    differences = regrets - reference
    if wilcoxon_p_value(differences, "zsplit") >= SIGNIFICANCE:
        return 0
    return 1 if np.mean(differences) < 0.0 else -1

"""Replicates: whether trials that repeat good points pay on noisy problems.

``mondrian-bo bench run --suite replicates --seeds 10 --out DIR`` compares the default search, which
never repeats a point, with two policies that repeat points: every fifth trial from the 40th on is
at the point with the best predicted mean, or the last fifth of the trials is at the five points
with the best predicted means. The score is the noise-free regret of the point with the best
predicted mean at the end.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from mondrian_bo.benchmarks.harness.optimizer_run import OptimizerRun, Trial
from mondrian_bo.benchmarks.problems import get_problem
from mondrian_bo.benchmarks.report.paired_tests import wilcoxon_p_value
from mondrian_bo.benchmarks.report.text_table import publish
from mondrian_bo.optimizer.optimizer import MondrianOptimizer

PROBLEMS = ("shifted_branin_noisy", "shifted_hartmann6_heavy", "shifted_ackley5_heavy")
"""The development half of the noisy problems."""

POLICIES = ("never", "every fifth", "last fifth")
"""When points are repeated."""

_FIRST = 40
"""Trial from which every fifth repeats a point, our choice: the model has learnt 40 trials."""

_N_BEST = 5
"""Number of points that the last fifth of the trials repeats, our choice."""


def regret(name: str, seed: int, policy: str, n_trials: int | None = None) -> float:
    """Return the noise-free regret of the best prediction after a search with a policy."""
    problem = get_problem(name)
    assert problem.optimum is not None
    budget = problem.budget if n_trials is None else n_trials
    search = OptimizerRun.of(problem, seed)
    told: list[Trial] = []
    for number in range(budget):
        params = None
        if policy == "every fifth" and number >= _FIRST and number % 5 == 4:
            params = _by_prediction(search.optimizer, told)[0].params
        elif policy == "last fifth" and number >= 0.8 * budget:
            best: list[dict[str, Any]] = []
            for one in _by_prediction(search.optimizer, told):
                if one.params not in best:
                    best.append(one.params)
            params = best[number % min(_N_BEST, len(best))]
        told.append(search.step(params))
    return _by_prediction(search.optimizer, told)[0].value - problem.optimum


def _by_prediction(optimizer: MondrianOptimizer, told: list[Trial]) -> list[Trial]:
    """Return the trials, the one with the best predicted mean first."""
    mean, _ = optimizer.predict([one.params for one in told])
    return [told[i] for i in np.argsort(mean, kind="stable")]


def run(arguments: Namespace) -> None:
    """Run the comparison; the table is printed and written to ``DIR/replicates.md``.

    Of the arguments of ``mondrian-bo bench run`` the seeds, trials, jobs and the directory count.
    """
    from joblib import Parallel, delayed

    arguments.out.mkdir(parents=True, exist_ok=True)
    jobs = [(n, s, p) for n in PROBLEMS for p in POLICIES for s in range(arguments.seeds)]
    found = Parallel(n_jobs=arguments.jobs)(delayed(regret)(*one, arguments.trials) for one in jobs)
    table = summary(np.reshape(found, (len(PROBLEMS), len(POLICIES), arguments.seeds)))
    publish(arguments.out / "replicates.md", *table)


def summary(regrets: np.ndarray) -> tuple[list[str], list[list[str]]]:
    """Return the table of regrets of shape (problems, policies, seeds).

    The p of a policy is that of Wilcoxon's signed-rank test that it is better than "never".
    """
    header = ["problem", POLICIES[0]]
    for policy in POLICIES[1:]:
        header += [policy, "p"]
    rows = []
    for name, (never, *others) in zip(PROBLEMS, regrets, strict=True):
        row = [name, f"{never.mean():.3g} ± {never.std():.2g}"]
        for other in others:
            p = wilcoxon_p_value(never - other, "zsplit", "greater")
            row += [f"{other.mean():.3g} ± {other.std():.2g}", f"{p:.2g}"]
        rows.append(row)
    return header, rows

"""Tables of the score: means over problems, groups and halves, tests, shares solved, cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from mondrian_bo.benchmarks.report.score import (
    POINTS,
    Estimate,
    PairedRuns,
    bootstrap,
    compare,
    compare_all,
    pair,
)
from mondrian_bo.benchmarks.report.summary import ProblemResults

__all__ = ["Score", "Section", "score", "score_sections"]

_Table: TypeAlias = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Header and rows of a table."""

_SIGNS = {"win": "+", "tie": "=", "loss": "-"}
"""Marks of test results in the table of problems."""

_PERCENT = tuple(str(point + 1) + " %" for point in POINTS)
"""Headings of the columns at `POINTS`."""

_RANK_LEGEND = (
    "Rank among the samplers at 25 %, 50 % and 100 % of the budget (1 is best, ties share their "
    "mean), averaged over seeds, then over problems, with 95 % bootstrap intervals (seeds "
    "resampled, problems fixed). The other columns are the difference to the reference: below 0 "
    "is better than it."
)
"""Text above the table of ranks."""

_REGRET_LEGEND = (
    "Normalised regret: distance of the best trial so far to the optimum, in units of the median "
    "regret after ten random trials, at most 1, below a millionth counted as 0. Under noise the "
    "best trial is the one with the best observation, and its noise-free value counts. Where the "
    "optimum is not known, the best value of any run stands for it."
)
"""Text above the table of regrets."""

_OUTCOME_LEGEND = (
    " Only feasible trials count, and a run without one has the worst value of the problem. With "
    "several objectives the value is minus the hypervolume within the reference point."
)
"""Text after that of regrets, if there are constraints or several objectives."""

_GROUP_LEGEND = (
    "Differences of the mean rank at 25 %, 50 % and 100 % of the budget, with the intervals of the "
    "first table: below 0 is better than the reference."
)
"""Text above the table of groups of problems."""

_TEST_LEGEND = (
    "Problems on which a sampler is significantly better than, not different from and worse than "
    "the reference: Wilcoxon's signed-rank test, two-sided, 5 %, seed by seed over the seeds both "
    "have, not corrected for the number of problems. Fewer than six seeds cannot differ."
)
"""Text above the table of tests."""

_HOLM_LEGEND = (
    "The same tests with Holm's correction: the probability of any wrong win or loss of a sampler "
    "at a point is at most 5 %. With few seeds and many problems no test can reach it: six seeds "
    "have p-values of at least 3 %."
)
"""Text above the table of corrected tests."""

_FEASIBLE_LEGEND = (
    "Mean share of feasible trials after the first feasible one, among all runs that have such "
    "trials, and in brackets the runs with a feasible trial and the median number of that trial."
)
"""Text above the table of feasible trials."""

_PROBLEM_LEGEND = (
    "Mean normalised regret at the end of the budget; + better, = not different from, - worse than "
    "the reference by the same test."
)
"""Text above the table of problems."""

_SOLVED_LEGEND = "Runs that end within the problem's tolerance of the optimum."
"""Text above the table of solved runs."""

_COST_LEGEND = (
    "Milliseconds of ask and tell per trial, wall time on one thread: mean over a run, and over "
    "its last tenth; median over seeds, then mean over problems."
)
"""Text above the table of costs."""


class Section(NamedTuple):
    """A titled table of the report."""

    title: str
    legend: str
    table: _Table


class Score(NamedTuple):
    """The paired runs that the tables of a score are computed from.

    Attributes
    ----------
    samplers : tuple of str
        The compared samplers, including the reference.
    reference : str
        The sampler that the others are tested against.
    results : tuple of ProblemResults
        The problems on which all samplers share a seed.
    paired : tuple of PairedRuns
        The same problems, with runs paired by seed.
    left_out : tuple of str
        Names of the problems without a common seed.
    """

    samplers: tuple[str, ...]
    reference: str
    results: tuple[ProblemResults, ...]
    paired: tuple[PairedRuns, ...]
    left_out: tuple[str, ...]


def score(
    results: Sequence[ProblemResults], samplers: Sequence[str], reference: str | None = None
) -> Score | None:
    """Pair the runs of samplers on all problems.

    Parameters
    ----------
    results : sequence of ProblemResults
        All problems.
    samplers : sequence of str
        Samplers to compare.
    reference : str, optional
        One of them; by default "tpe" if it is among them, else the first.

    Returns
    -------
    Score or None
        None if there are fewer than two samplers, or no problem on which all share a seed.

    Raises
    ------
    ValueError
        If the reference is not among the samplers.
    """
    if reference is None:
        reference = "tpe" if "tpe" in samplers else samplers[0]
    if reference not in samplers:
        raise ValueError(f"the reference {reference!r} is none of {', '.join(samplers)}")
    paired = [pair(result, samplers) for result in results]
    kept = [(r, p) for r, p in zip(results, paired, strict=True) if p is not None]
    if len(samplers) < 2 or not kept:
        return None
    return Score(
        tuple(samplers),
        reference,
        tuple(result for result, _ in kept),
        tuple(runs for _, runs in kept),
        tuple(r.facts.name for r, p in zip(results, paired, strict=True) if p is None),
    )


def score_sections(score: Score) -> list[Section]:
    """Return the tables of a score, the most condensed first."""
    all_facts = [result.facts for result in score.results]
    has_constraints = any(facts.n_constraints for facts in all_facts)
    has_outcomes = has_constraints or any(facts.reference for facts in all_facts)
    regret_legend = _REGRET_LEGEND + (_OUTCOME_LEGEND if has_outcomes else "")
    sections = [
        Section(f"Mean rank over {_scope(score)}", _RANK_LEGEND, _rank_table(score)),
        Section("Mean normalised regret", regret_legend, _regret_table(score)),
        Section(f"Wins, ties, losses against {score.reference}", _TEST_LEGEND, _test_table(score)),
        Section(
            f"Wins, ties, losses against {score.reference}, corrected",
            _HOLM_LEGEND,
            _corrected_table(score),
        ),
        Section("Mean rank by group and half, end of budget", "", _group_table(score, "ranks")),
        Section(
            f"Rank compared with {score.reference} by group and half",
            _GROUP_LEGEND,
            _difference_table(score),
        ),
        Section(
            "Mean normalised regret by group and half, end of budget",
            "",
            _group_table(score, "regrets"),
        ),
        Section("Problem by problem", _PROBLEM_LEGEND, _problem_table(score)),
        Section("Solved", _SOLVED_LEGEND, _solved_table(score)),
        Section("Cost of a suggestion", _COST_LEGEND, _cost_table(score)),
    ]
    if has_constraints:
        sections.insert(-1, Section("Feasible trials", _FEASIBLE_LEGEND, _feasible_table(score)))
    return sections


def _scope(score: Score) -> str:
    n_seeds = sorted({len(runs.seeds) for runs in score.paired})
    seeds = str(n_seeds[0]) if len(n_seeds) == 1 else f"{n_seeds[0]} to {n_seeds[-1]}"
    scope = f"{len(score.paired)} problems, {seeds} seeds"
    return f"{scope} (not {', '.join(score.left_out)})" if score.left_out else scope


def _rank_table(score: Score) -> _Table:
    reference = score.samplers.index(score.reference)
    ranks = [runs.ranks[:, :, POINTS] for runs in score.paired]
    own = bootstrap(ranks)
    difference = bootstrap([rank - rank[reference] for rank in ranks])
    header = ["sampler", *_PERCENT, *(f"{at} - {score.reference}" for at in _PERCENT)]
    rows = []
    for s in np.argsort(own.mean[:, -1], kind="stable"):
        others = ["-"] * len(POINTS) if s == reference else _intervals(difference, s, "+.2f")
        rows.append([score.samplers[s], *_intervals(own, s, ".2f"), *others])
    return header, rows


def _regret_table(score: Score) -> _Table:
    estimate = bootstrap([runs.regrets[:, :, POINTS] for runs in score.paired])
    order = np.argsort(estimate.mean[:, -1], kind="stable")
    rows = [[score.samplers[s], *_intervals(estimate, s, ".4f")] for s in order]
    return ["sampler", *_PERCENT], rows


def _intervals(estimate: Estimate, sampler: int, form: str) -> list[str]:
    return [
        f"{mean:{form}} [{low:{form}}, {high:{form}}]"
        for mean, low, high in zip(*(part[sampler] for part in estimate), strict=True)
    ]


def _test_table(score: Score) -> _Table:
    rows = []
    for sampler in _others(score):
        counts = [
            Counter(
                compare(result, sampler, score.reference, point + 1) for result in score.results
            )
            for point in POINTS
        ]
        rows.append([sampler, *(f"{c['win']} / {c['tie']} / {c['loss']}" for c in counts)])
    return ["sampler", *_PERCENT], rows


def _corrected_table(score: Score) -> _Table:
    rows = []
    for sampler in _others(score):
        counts = [
            Counter(compare_all(score.results, sampler, score.reference, point + 1))
            for point in POINTS
        ]
        rows.append([sampler, *(f"{c['win']} / {c['tie']} / {c['loss']}" for c in counts)])
    return ["sampler", *_PERCENT], rows


def _feasible_table(score: Score) -> _Table:
    def cell(result: ProblemResults, sampler: str, seeds: Sequence[int]) -> str:
        runs = [result.feasible[sampler][seed] for seed in seeds]
        firsts = [int(run.argmax()) for run in runs if run.any()]
        if not firsts:
            return f"- (0/{len(runs)})"
        later = [run[run.argmax() + 1 :] for run in runs if run[:-1].any()]
        share = f"{np.mean([run.mean() for run in later]):.0%}" if later else "-"
        return f"{share} ({len(firsts)}/{len(runs)}, {np.median(firsts) + 1:.0f})"

    rows = [
        [result.facts.name, *(cell(result, sampler, runs.seeds) for sampler in score.samplers)]
        for result, runs in zip(score.results, score.paired, strict=True)
        if result.facts.n_constraints
    ]
    return ["problem", *score.samplers], rows


def _others(score: Score) -> list[str]:
    return [sampler for sampler in score.samplers if sampler != score.reference]


def _groups(score: Score) -> dict[str, list[PairedRuns]]:
    """Return the problems by group, then by half, then all of them."""
    groups: dict[str, list[PairedRuns]] = {}
    for runs in score.paired:
        for key in (runs.facts.group, runs.facts.half, "all"):
            groups.setdefault(key, []).append(runs)
    halves = [half for half in ("development", "held-out", "all") if half in groups]
    return {key: groups[key] for key in [*(key for key in groups if key not in halves), *halves]}


def _group_table(score: Score, quantity: str) -> _Table:
    rows = []
    for key, group in _groups(score).items():
        finals = [getattr(runs, quantity)[:, :, -1].mean(axis=1) for runs in group]
        means = np.mean(finals, axis=0)
        rows.append([f"{key} ({len(group)})", *(f"{mean:.3f}" for mean in means)])
    return ["group (problems)", *score.samplers], rows


def _difference_table(score: Score) -> _Table:
    reference = score.samplers.index(score.reference)
    rows = []
    for key, group in _groups(score).items():
        ranks = [runs.ranks[:, :, POINTS] for runs in group]
        difference = bootstrap([rank - rank[reference] for rank in ranks])
        for sampler in _others(score):
            cells = _intervals(difference, score.samplers.index(sampler), "+.2f")
            rows.append([f"{key} ({len(group)})", sampler, *cells])
    return ["group (problems)", "sampler", *_PERCENT], rows


def _problem_table(score: Score) -> _Table:
    rows = []
    for result, runs in zip(score.results, score.paired, strict=True):
        finals = runs.regrets[:, :, -1].mean(axis=1)
        cells = []
        for sampler, final in zip(score.samplers, finals, strict=True):
            cell = f"{final:.2g}"
            if sampler != score.reference:
                cell += f" {_SIGNS[compare(result, sampler, score.reference, 100)]}"
            cells.append(cell)
        rows.append([runs.facts.name, runs.facts.half, *cells])
    return ["problem", "half", *score.samplers], rows


def _solved_table(score: Score) -> _Table:
    def share(result: ProblemResults, sampler: str, seeds: Sequence[int]) -> str:
        final = np.array([result.best[sampler][seed][-1] for seed in seeds])
        solved = int(np.sum(final - result.optimum <= result.facts.tolerance))
        return f"{solved}/{len(seeds)}"

    rows = [
        [
            result.facts.name,
            f"{result.facts.tolerance:g}",
            *(share(result, sampler, runs.seeds) for sampler in score.samplers),
        ]
        for result, runs in zip(score.results, score.paired, strict=True)
    ]
    return ["problem", "tolerance", *score.samplers], rows


def _cost_table(score: Score) -> _Table:
    def milliseconds(sampler: str, last_share: float) -> float:
        by_problem = []
        for result, runs in zip(score.results, score.paired, strict=True):
            n_last = math.ceil(last_share * result.n_trials)
            means = [result.seconds[sampler][seed][-n_last:].mean() for seed in runs.seeds]
            by_problem.append(np.median(means))
        return 1e3 * float(np.mean(by_problem))

    rows = [
        [sampler, f"{milliseconds(sampler, 1.0):.3g}", f"{milliseconds(sampler, 0.1):.3g}"]
        for sampler in score.samplers
    ]
    return ["sampler", "whole run", "last tenth"], rows

"""Scores on the tasks of Bayesmark, by the formula of the black-box challenge of 2020.

The baseline of a task is our own (:mod:`mondrian_bo.benchmarks.bayesmark_baseline`).

``python -m mondrian_bo.benchmarks.bayesmark_table docs/results/bayesmark.jsonl.gz`` prints the
tables of an archive, or of a directory that ``mondrian-bo bench run --suite bayesmark`` wrote to.
Samplers are compared on the tasks and seeds that all of them have. Wilcoxon's signed-rank test over
tasks tells whether a difference would hold on other tasks of this kind. ``--tasks`` adds a table of
all tasks. ``--suite`` keeps those of a suite, and ``--without`` leaves tasks out, to see how much
they decide.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from mondrian_bo.benchmarks.bayesmark_baseline import PREFIX, Baseline, baselines
from mondrian_bo.benchmarks.harness.archive import Results, read_results
from mondrian_bo.benchmarks.harness.samplers import split_names
from mondrian_bo.benchmarks.problems import SUITES
from mondrian_bo.benchmarks.report.paired_tests import holm_corrected, wilcoxon_p_value
from mondrian_bo.benchmarks.report.text_table import to_markdown
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["BATCHES", "Losses", "losses", "main", "normalised"]

BATCHES = (4, 8, 16)
"""Numbers of batches after which scores are shown; the challenge counts the last."""

_BATCH = 8
"""Trials of a batch."""

_ROUNDING = 1e-9
"""Differences of normalised losses below this are rounding: equal accuracies differ by 1e-16."""


def normalised(best: FloatArray, baseline: Baseline) -> FloatArray:
    """Return the normalised losses of the best losses so far (`bayesmark.experiment_analysis`).

    Parameters
    ----------
    best : float64 array of any shape
        Best losses.
    baseline : Baseline
        The baseline of the task.

    Returns
    -------
    float64 array of the same shape
        Between -1 and 1. Negative where a loss is below the best one of the baseline.
    """
    scaled = (best - baseline.best) / (baseline.clip - baseline.best)
    return np.clip(scaled, -1.0, 1.0)


class Losses(NamedTuple):
    """The normalised losses of compared samplers.

    Attributes
    ----------
    samplers, tasks : tuple of str
        Their names.
    n_seeds : tuple of int
        Number of seeds that all samplers have, for each task.
    means : float64 array of shape (n_samplers, n_tasks, len(BATCHES))
        Means over these seeds.
    """

    samplers: tuple[str, ...]
    tasks: tuple[str, ...]
    n_seeds: tuple[int, ...]
    means: FloatArray

    @property
    def scores(self) -> FloatArray:
        """The scores, shape (n_samplers, len(BATCHES)): 100 times 1 - mean loss."""
        scores: FloatArray = 100.0 * (1.0 - self.means.mean(axis=1))
        return scores


def losses(results: Results, samplers: Sequence[str], without: Collection[str] = ()) -> Losses:
    """Return the normalised losses on the tasks and seeds that all given samplers have.

    Parameters
    ----------
    results : Results
        Runs of 128 trials on tasks of Bayesmark. Other and shorter runs are ignored.
    samplers : sequence of str
        Names of samplers.
    without : collection of str, default=()
        Names of tasks that are left out.

    Returns
    -------
    Losses
        The losses, tasks in alphabetical order.

    Raises
    ------
    ValueError
        If there is no run that all samplers have, or no baseline of a task that has one, or no run
        on a task that is left out.
    """
    known = baselines()
    strange = sorted(name for name in without if PREFIX + name not in results.facts)
    if strange:
        raise ValueError(f"there is no run on {', '.join(strange)}")
    trials = _BATCH * np.array(BATCHES) - 1
    tasks, n_seeds, means = [], [], []
    for name in sorted(results.facts):
        task = name.removeprefix(PREFIX)
        if task == name or task in without:
            continue
        curves: list[dict[int, FloatArray]] = [
            {
                seed: curve.best[trials]
                for (problem, sampler, seed), curve in results.runs.items()
                if (problem, sampler) == (name, one) and len(curve.best) > trials[-1]
            }
            for one in samplers
        ]
        seeds = sorted(set.intersection(*map(set, curves)))
        if not seeds:
            continue
        if task not in known:
            raise ValueError(
                f"{task} has no baseline; python -m mondrian_bo.benchmarks.bayesmark_baseline "
                "--suite bayesmark measures it"
            )
        best = np.array([[own[seed] for seed in seeds] for own in curves])
        tasks.append(task)
        n_seeds.append(len(seeds))
        means.append(normalised(best, known[task]).mean(axis=1))
    if not tasks:
        raise ValueError(f"there is no task on which all of {', '.join(samplers)} have a run")
    return Losses(tuple(samplers), tuple(tasks), tuple(n_seeds), np.stack(means, axis=1))


def score_rows(measured: Losses, reference: str) -> list[list[str]]:
    """Return a row of cells for each sampler: its scores, and its difference from a reference."""
    n_tasks = len(measured.tasks)
    final = measured.means[:, :, -1]
    base = final[measured.samplers.index(reference)]
    gains = base - final
    gains[np.abs(gains) < _ROUNDING] = 0.0
    p_values = holm_corrected(
        [
            wilcoxon_p_value(gain, "wilcox")
            for name, gain in zip(measured.samplers, gains, strict=True)
            if name != reference
        ]
    )
    others = iter(p_values)
    rows = []
    for name, scores, gain in zip(measured.samplers, measured.scores, gains, strict=True):
        cells = [name, *(f"{score:.2f}" for score in scores)]
        if name == reference:
            cells += ["", "", ""]
        else:
            half_width = np.inf
            if n_tasks > 1:
                quantile = student.ppf(0.975, n_tasks - 1)
                half_width = 100.0 * quantile * gain.std(ddof=1) / np.sqrt(n_tasks)
            cells += [
                f"{100.0 * gain.mean():+.2f} ± {half_width:.2f}",
                f"{(gain > 0.0).sum()}, {(gain == 0.0).sum()}, {(gain < 0.0).sum()}",
                f"{next(others):.2g}",
            ]
        rows.append(cells)
    return rows


def model_rows(measured: Losses) -> list[list[str]]:
    """Return a row of cells for each model: its number of tasks and the final scores on them."""
    models = np.array([task.split("_")[0] for task in measured.tasks])
    rows = []
    for model in np.unique(models):
        chosen = measured.means[:, models == model, -1]
        scores = 100.0 * (1.0 - chosen.mean(axis=1))
        rows.append([str(model), str(chosen.shape[1]), *(f"{score:.2f}" for score in scores)])
    return rows


def task_rows(measured: Losses) -> list[list[str]]:
    """Return a row of cells for each task: the final scores on it."""
    scores = 100.0 * (1.0 - measured.means[:, :, -1])
    rows = zip(measured.tasks, scores.T, strict=True)
    return [[task, *(f"{score:.2f}" for score in row)] for task, row in rows]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the scores of samplers, and their scores by model and by task."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, nargs="+", help="archives, or directories of results")
    parser.add_argument("--samplers", help="samplers to compare (default: all that have runs)")
    parser.add_argument("--reference", help="sampler to compare with (default: the first)")
    parser.add_argument("--tasks", action="store_true", help="show the scores on each task")
    suites = [name for name in SUITES if name.startswith("bayesmark")]
    parser.add_argument(
        "--suite", choices=suites, default="bayesmark", help="which tasks (%(default)s)"
    )
    parser.add_argument("--without", default="", help="tasks to leave out, e.g. DT_digits_acc")
    parsed = parser.parse_args(arguments)
    results = read_results(parsed.source)
    there = sorted({name for _, name, _ in results.runs})
    samplers = split_names(parsed.samplers) if parsed.samplers else there
    chosen = set(SUITES[parsed.suite].problems)
    tasks = {name for name in results.facts if name.startswith(PREFIX)}
    others = {name.removeprefix(PREFIX) for name in tasks - chosen}
    without = split_names(parsed.without) if parsed.without else []
    measured = losses(results, samplers, others.union(without))
    reference = parsed.reference or measured.samplers[0]
    if reference not in measured.samplers:
        parser.error(f"{reference} is not among {', '.join(measured.samplers)}")
    print(f"{len(measured.tasks)} tasks, {sum(measured.n_seeds)} runs of each sampler\n")
    header = ["sampler", *(f"{_BATCH * one} trials" for one in BATCHES)]
    header += [f"beside {reference}", "better, equal, worse", "p"]
    print(to_markdown(header, score_rows(measured, reference)), end="\n\n")
    print(to_markdown(["model", "tasks", *measured.samplers], model_rows(measured)))
    if parsed.tasks:
        print(f"\n{to_markdown(['task', *measured.samplers], task_rows(measured))}")


if __name__ == "__main__":
    main()

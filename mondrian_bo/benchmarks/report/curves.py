"""Pictures of regret against trials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mondrian_bo.benchmarks.report.score import PairedRuns, bootstrap
from mondrian_bo.benchmarks.report.summary import ProblemResults

__all__ = ["plot_regret", "plot_score"]

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Below this the curves of a polished optimum would squeeze the rest of the picture.
_SMALLEST_REGRET = 1e-7


def plot_regret(results: ProblemResults, samplers: Sequence[str], path: Path) -> None:
    """Draw per sampler the median regret and the band between its quartiles.

    The scale is logarithmic; regrets of 0, and below 1e-7, are drawn at the bottom.

    Parameters
    ----------
    results : ProblemResults
        The runs.
    samplers : sequence of str
        All samplers of the report, so that each keeps its colour in every picture.
    path : Path
        The PNG to write.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    figure = _figure(7, 4.5)
    axes = figure.add_subplot()
    trials = np.arange(1, results.n_trials + 1)
    quartiles = {
        sampler: np.quantile(results.regrets(sampler), [0.25, 0.5, 0.75], axis=0)
        for sampler in results.best
    }
    drawn = np.concatenate([curves.ravel() for curves in quartiles.values()])
    positive = drawn[drawn > _SMALLEST_REGRET]
    floor = 0.5 * float(positive.min()) if positive.size else 0.0
    for sampler, (lower, median, upper) in quartiles.items():
        colour = f"C{list(samplers).index(sampler)}"
        axes.plot(trials, np.maximum(median, floor), color=colour, label=sampler)
        axes.fill_between(
            trials,
            np.maximum(lower, floor),
            np.maximum(upper, floor),
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
    if positive.size:
        axes.set_yscale("log")
    axes.set_xlim(0, results.n_trials)
    axes.set_xlabel("trials")
    axes.set_ylabel("regret (median, quartiles)")
    axes.set_title(results.facts.name)
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def plot_score(problems: Sequence[PairedRuns], samplers: Sequence[str], path: Path) -> None:
    """Draw mean rank and mean normalised regret over the problems against the share of the budget.

    Parameters
    ----------
    problems : sequence of PairedRuns
        The runs, lined up.
    samplers : sequence of str
        Their samplers, in the order of the first axis.
    path : Path
        The PNG to write.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    figure = _figure(11, 4.5)
    percent = np.arange(1, 101)
    panels = zip(figure.subplots(1, 2), ("ranks", "regrets"), strict=True)
    for axes, quantity in panels:
        estimate = bootstrap([getattr(runs, quantity) for runs in problems])
        for s, (sampler, mean) in enumerate(zip(samplers, estimate.mean, strict=True)):
            axes.plot(percent, mean, color=f"C{s}", label=sampler)
            axes.fill_between(
                percent, estimate.low[s], estimate.high[s], color=f"C{s}", alpha=0.15, linewidth=0
            )
        axes.set_xlim(0, 100)
        axes.set_xlabel("% of the budget")
        axes.grid(alpha=0.3)
    rank_axes, regret_axes = figure.axes
    rank_axes.set_ylabel("mean rank (95 % interval)")
    # Outside: one within a panel lies on a curve for some samplers or others.
    figure.legend(
        *rank_axes.get_legend_handles_labels(), loc="outside upper center", ncols=len(samplers)
    )
    regret_axes.set_ylabel("mean normalised regret (95 % interval)")
    regret_axes.set_yscale("log")
    figure.savefig(path, dpi=120)


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "the report draws with matplotlib: pip install 'mondrian-bo[bench]'"
        ) from error
    return Figure(figsize=(width, height), layout="constrained")

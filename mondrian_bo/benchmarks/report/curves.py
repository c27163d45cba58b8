"""Pictures of regret against trials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mondrian_bo.benchmarks.report.score import PairedRuns, bootstrap
from mondrian_bo.benchmarks.report.summary import ProblemResults
from mondrian_bo.shared.array_types import AnyArray, FloatArray

__all__ = ["plot_regret", "plot_score"]

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SMALLEST_REGRET = 1e-7
"""Smallest regret on the logarithmic axis: smaller ones, of a polished optimum, would compress the
rest of the picture."""

_SCORE_DPI = 100
"""Dots per inch of the score: its picture stays below 150 kB, the limit of the documentation."""

_LEGEND_ENTRY_WIDTH = 1.5
"""Inches of the figure's width per column of the legend: enough for the names of most samplers."""


def plot_regret(results: ProblemResults, samplers: Sequence[str], path: Path) -> None:
    """Draw the median regret of each sampler and the band between its quartiles.

    The scale is logarithmic. Regrets below 1e-7, and regrets of 0, are drawn at the bottom.

    Parameters
    ----------
    results : ProblemResults
        The runs.
    samplers : sequence of str
        All samplers of the report, so that each has the same colour in every picture.
    path : Path
        The PNG to write.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    figure = _figure(7, 4.8)
    axes = figure.add_subplot()
    trials = np.arange(1, results.n_trials + 1)
    quartiles = {
        sampler: np.quantile(results.regrets(sampler), [0.25, 0.5, 0.75], axis=0)
        for sampler in results.best
    }
    drawn = np.concatenate([curves.ravel() for curves in quartiles.values()])
    positive = drawn[drawn > _SMALLEST_REGRET]
    floor = 0.5 * float(positive.min()) if positive.size else 0.0
    for sampler, curves in quartiles.items():
        lower, median, upper = np.maximum(curves, floor)
        _draw(axes, trials, (lower, median, upper), list(samplers).index(sampler), sampler)
    if positive.size:
        axes.set_yscale("log")
    axes.set_xlim(0, results.n_trials)
    axes.set_xlabel("trials")
    axes.set_ylabel("regret (median, quartiles)")
    axes.set_title(results.facts.name)
    _add_legend(figure, axes)
    figure.savefig(path, dpi=120)


def plot_score(problems: Sequence[PairedRuns], samplers: Sequence[str], path: Path) -> None:
    """Draw mean rank and mean normalised regret over the problems against the share of the budget.

    `problems` are the paired runs, `samplers` the names along their first axis; `path` and errors
    are those of `plot_regret`.
    """
    figure = _figure(11, 4.5)
    percent = np.arange(1, 101)
    panels = zip(figure.subplots(1, 2), ("ranks", "regrets"), strict=True)
    for axes, quantity in panels:
        mean, low, high = bootstrap([getattr(runs, quantity) for runs in problems])
        for s, sampler in enumerate(samplers):
            _draw(axes, percent, (low[s], mean[s], high[s]), s, sampler)
        axes.set_xlim(0, 100)
        axes.set_xlabel("% of the budget")
    rank_axes, regret_axes = figure.axes
    rank_axes.set_ylabel("mean rank (95 % interval)")
    regret_axes.set_ylabel("mean normalised regret (95 % interval)")
    regret_axes.set_yscale("log")
    _add_legend(figure, rank_axes)
    figure.savefig(path, dpi=_SCORE_DPI)


def _draw(
    axes: Axes,
    x: AnyArray,
    curves: tuple[FloatArray, FloatArray, FloatArray],
    colour: int,
    label: str,
) -> None:
    """Draw a curve and the band around it, given as lower end, middle and upper end."""
    lower, middle, upper = curves
    axes.plot(x, middle, color=f"C{colour}", label=label)
    axes.fill_between(x, lower, upper, color=f"C{colour}", alpha=0.15, linewidth=0)
    axes.grid(visible=True, alpha=0.3)


def _add_legend(figure: Figure, axes: Axes) -> None:
    """Add a legend above the axes: inside, it would cover a curve of one problem or another."""
    handles, labels = axes.get_legend_handles_labels()
    columns = min(len(labels), int(figure.get_figwidth() / _LEGEND_ENTRY_WIDTH))
    figure.legend(handles, labels, loc="outside upper center", ncols=columns)


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "the report draws with matplotlib: pip install 'mondrian-bo[bench]'"
        ) from error
    return Figure(figsize=(width, height), layout="constrained")

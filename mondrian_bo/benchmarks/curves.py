"""Pictures of regret against trials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mondrian_bo.benchmarks.summary import ProblemResults

__all__ = ["plot_regret"]

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
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "the report draws with matplotlib: pip install 'mondrian-bo[bench]'"
        ) from error

    figure = Figure(figsize=(7, 4.5), layout="constrained")
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

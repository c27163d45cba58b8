"""Plots of Optuna studies and of their models, with matplotlib.

They work with studies of any sampler. Each function draws into given axes or a new figure, and
returns the axes. :mod:`mondrian_bo.plotting.plotly` has the same plots for notebooks and
optuna-dashboard. ``docs/reading.md`` shows them. This package only gives them a short name: their
code is in :mod:`mondrian_bo.integrations.optuna.plots`.
"""

from __future__ import annotations

from mondrian_bo.integrations.optuna.plots.with_matplotlib import (
    plot_acquisition,
    plot_calibration,
    plot_history,
    plot_importance,
    plot_learning_curves,
    plot_map,
    plot_pairs,
    plot_partition,
    plot_slice,
)

__all__ = [
    "plot_acquisition",
    "plot_calibration",
    "plot_history",
    "plot_importance",
    "plot_learning_curves",
    "plot_map",
    "plot_pairs",
    "plot_partition",
    "plot_slice",
]

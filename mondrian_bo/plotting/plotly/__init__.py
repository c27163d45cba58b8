"""Plots of Optuna studies and of their models, with plotly.

The functions have the names and arguments of those of :mod:`mondrian_bo.plotting`, without
``axes``, and show the same numbers. Each returns a :class:`plotly.graph_objects.Figure`, for
notebooks and optuna-dashboard. Points say which trials they are. The functions raise an ImportError
where plotly is not installed (extra ``plot``).
"""

from __future__ import annotations

from mondrian_bo.integrations.optuna.plots.with_plotly import (
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

"""Plots of studies without parameters or complete trials, with both libraries."""

from __future__ import annotations

import pytest
from matplotlib import pyplot
from studies import make_study, optimize

from mondrian_bo import plotting
from mondrian_bo.plotting import plotly


@pytest.mark.parametrize("n_trials", [0, 3])
def test_importance_without_parameters_is_empty(n_trials: int) -> None:
    study = optimize(make_study(), lambda trial: 1.0, n_trials)
    axes = plotting.plot_importance(study)
    axes.figure.canvas.draw()
    assert not axes.patches
    pyplot.close(axes.figure)
    (bars,) = plotly.plot_importance(study).data
    assert not bars.x

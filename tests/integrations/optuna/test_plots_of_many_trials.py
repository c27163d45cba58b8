"""Plots of thousands of trials: dots and borders do not hide what they are on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mondrian_bo.integrations.optuna.plots import draw_matplotlib
from mondrian_bo.integrations.optuna.plots.dots import dot_opacity, dot_scale
from mondrian_bo.integrations.optuna.plots.lines import Line
from mondrian_bo.integrations.optuna.plots.model import MapData, PartitionData
from mondrian_bo.shared.array_types import FloatArray


def _map(n_trials: int) -> MapData:
    """Return a map of a sum with trials everywhere."""
    units = np.linspace(0.0, 1.0, 40)
    line = Line("x", units, units, None, False, False)
    trials = np.random.default_rng(0).random((n_trials, 2))
    surface = units[:, None] + units
    return MapData(line, line, surface, trials, list(range(n_trials)), (0.5, 0.5), "value")


def _partition(n_trials: int) -> PartitionData:
    """Return a partition into equal squares, one for two trials."""
    n = int(np.sqrt(n_trials / 2))
    corners = np.stack(np.meshgrid(np.arange(n) / n, np.arange(n) / n), axis=-1).reshape(-1, 2)
    points = np.random.default_rng(0).random((n_trials, 2))
    means = corners.sum(axis=1)
    numbers = list(range(n_trials))
    return PartitionData(("x", "y"), corners, corners + 1.0 / n, means, points, numbers, "value")


def _pixels(data: MapData | PartitionData) -> FloatArray:
    """Return the colours inside the axes in a report, as numbers from 0 to 1."""
    figure = Figure(figsize=(5.0, 3.4), layout="constrained", dpi=110)
    canvas = FigureCanvasAgg(figure)
    axes: Any = draw_matplotlib.draw(data, figure.add_subplot())
    canvas.draw()
    box = axes.get_window_extent()
    picture = np.asarray(canvas.buffer_rgba())[::-1, :, :3] / 255.0
    return picture[int(box.y0) + 2 : int(box.y1) - 1, int(box.x0) + 2 : int(box.x1) - 1]


@pytest.mark.parametrize("n_trials", [500, 5000])
def test_dots_do_not_hide_a_map(n_trials: int) -> None:
    data = _map(n_trials)
    bare = _pixels(data._replace(trials=np.full((n_trials, 2), np.nan)))
    assert np.abs(_pixels(data) - bare).mean() < 0.03


@pytest.mark.parametrize("n_trials", [500, 5000])
def test_borders_and_dots_do_not_hide_a_partition(n_trials: int) -> None:
    # No colour of a cell is near to white or black.
    picture = _pixels(_partition(n_trials))
    assert (picture.min(axis=-1) > 0.8).mean() < 0.12
    assert (picture.max(axis=-1) < 0.1).mean() < 0.05


def test_few_trials_have_dots_of_full_size() -> None:
    assert dot_scale(0) == dot_scale(500) == dot_opacity(0) == dot_opacity(500) == 1.0
    for n_trials in (600, 3000, 100_000):
        # The dots together have the same area.
        assert n_trials * dot_scale(n_trials) ** 2 == pytest.approx(500.0)
        assert 0.4 < dot_opacity(n_trials) < 1.0


def test_plotly_has_small_dots_and_thin_borders_too() -> None:
    pytest.importorskip("plotly")
    from mondrian_bo.integrations.optuna.plots import draw_plotly

    sizes, opacities, borders = [], [], []
    for n_trials in (100, 2000):
        figure = draw_plotly.draw(_map(n_trials))
        (dots,) = [one for one in figure.data if one.name == "trials"]
        sizes.append(dots.marker.size)
        opacities.append(dots.marker.opacity)
        borders.append(draw_plotly.draw(_partition(n_trials)).data[0].line.width)
    assert sizes == [5.0, 2.5]
    assert opacities == [1.0, 0.7]
    assert borders == [1.0, 0.25]

"""Hyper-parameters of models of 20,000 points: heights of a map, and colours of photographs.

The data are real and come with other packages: an elevation map with matplotlib, two photographs
with scikit-learn. A model is fitted to one part of the map or the photographs and scored on
another. Cells between the two parts belong to neither, so that no validation point has a training
point beside it. An evaluation takes some 30 to 150 ms on one thread. Every part is seeded, so that
a value depends on the parameters alone. The optima are unknown.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from mondrian_bo.benchmarks.problems.base import Problem
from mondrian_bo.search_space import Categorical, Float, Int, SearchSpace
from mondrian_bo.shared.array_types import BoolArray, FloatArray

__all__ = ["LARGER_LEARNING_PROBLEMS", "Split", "photographs", "terrain"]

_N_TRAINING = 20_000
"""Points that a model is fitted to."""

_N_VALIDATION = 5_000
"""Points that it is scored on."""

_BUDGET = 100
"""Trials per run: half of the usual number, because evaluations are slower than others."""

_BLOCK = 16
"""Edge of the square blocks of the map, in cells; a quarter of the blocks is for validation."""

_MAP_GAP = 3
"""Cells around the validation blocks that belong to neither part."""

_STRIP = 64
"""Width of the strips of a photograph, in pixels; a quarter of the strips is for validation."""

_PHOTOGRAPH_GAP = 8
"""Pixels on both sides of a validation strip that belong to neither part; more than a patch."""

_PATCH = 4
"""Edge of the square patches that colours are predicted from, in pixels."""

_ITERATIONS = 30
"""Trees of boosting: few, so that evaluations are fast."""


class Split(NamedTuple):
    """Inputs and targets of the two parts."""

    training_x: FloatArray
    training_y: FloatArray
    validation_x: FloatArray
    validation_y: FloatArray


def _chosen(rng: np.random.Generator, mask: BoolArray, n: int) -> tuple[Any, Any]:
    """Return the row and column numbers of `n` random cells of a mask, all different."""
    cells = rng.choice(np.flatnonzero(mask), n, replace=False)
    rows, columns = np.unravel_index(cells, mask.shape)
    return rows, columns


def _rmse(predicted: FloatArray, target: FloatArray) -> float:
    return float(np.sqrt(np.mean((predicted - target) ** 2)))


@cache
def terrain() -> Split:
    """Return column and row numbers, and heights in metres, of cells of matplotlib's map.

    The map shows the Jacksboro fault in Tennessee with 344 x 403 cells.
    """
    from matplotlib.cbook import get_sample_data
    from scipy.ndimage import binary_dilation

    file = get_sample_data("jacksboro_fault_dem.npz", asfileobj=False)
    heights = np.load(file)["elevation"].astype(float)
    rows, columns = np.indices(heights.shape)
    validation = (rows // _BLOCK + columns // _BLOCK) % 4 == 1
    training = ~binary_dilation(validation, iterations=_MAP_GAP)
    rng = np.random.default_rng(0)
    parts = []
    for mask, n in ((training, _N_TRAINING), (validation, _N_VALIDATION)):
        row, column = _chosen(rng, mask, n)
        parts += [np.column_stack([column, row]).astype(float), heights[row, column]]
    return Split(*parts)


def _terrain(params: Mapping[str, Any]) -> float:
    """Return the validation error of kriging: a polynomial plus features of a kernel, by ridge."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

    data = terrain()
    angle, length = np.deg2rad(params["angle"]), params["length"]
    root = np.sqrt(params["stretch"])
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    features = make_pipeline(
        FunctionTransformer(np.dot, kw_args={"b": rotation / [length * root, length / root]}),
        Nystroem(
            kernel=params["kernel"],
            gamma=0.5,
            n_components=params["n_components"],
            random_state=0,
        ),
    )
    trend = make_pipeline(
        StandardScaler(), PolynomialFeatures(params["degree"], include_bias=False)
    )
    steps = (features, trend) if params["degree"] else (features,)
    model = make_pipeline(make_union(*steps), Ridge(params["alpha"], solver="cholesky"))
    with warnings.catch_warnings():
        # The problem includes systems that are nearly singular.
        warnings.simplefilter("ignore")
        model.fit(data.training_x, data.training_y)
    return _rmse(model.predict(data.validation_x), data.validation_y)


@cache
def photographs() -> Split:
    """Return grey patches of scikit-learn's two photographs, and red minus blue in the middle.

    The photographs, of a temple and of a flower, have 427 x 640 pixels.
    """
    from numpy.lib.stride_tricks import sliding_window_view
    from sklearn.datasets import load_sample_images

    rng = np.random.default_rng(0)
    parts: list[list[FloatArray]] = [[], [], [], []]
    photos = [photo.astype(float) for photo in load_sample_images().images]
    for photo in photos:
        patches = sliding_window_view(photo.mean(axis=2), (_PATCH, _PATCH))
        first = np.arange(patches.shape[1])
        last = first + _PATCH - 1
        validation = _in_validation_strip(first) & _in_validation_strip(last)
        training = ~(
            _in_validation_strip(first - _PHOTOGRAPH_GAP)
            | _in_validation_strip(last + _PHOTOGRAPH_GAP)
        )
        for part, columns, n in ((0, training, _N_TRAINING), (2, validation, _N_VALIDATION)):
            mask = np.broadcast_to(columns, patches.shape[:2])
            row, column = _chosen(rng, mask, n // len(photos))
            middle = photo[row + _PATCH // 2, column + _PATCH // 2]
            parts[part].append(patches[row, column].reshape(len(row), -1))
            parts[part + 1].append(middle[:, 0] - middle[:, 2])
    return Split(*map(np.concatenate, parts))


def _in_validation_strip(columns: Any) -> BoolArray:
    return np.asarray(columns // _STRIP % 4 == 1)


def _photographs(params: Mapping[str, Any]) -> float:
    """Return the validation error of histogram gradient boosting."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    settings = dict(params)
    centred = settings.pop("centred")

    def features(patches: FloatArray) -> FloatArray:
        if not centred:
            return patches
        means = patches.mean(axis=1, keepdims=True)
        return np.hstack([means, patches - means])

    data = photographs()
    model = HistGradientBoostingRegressor(
        max_iter=_ITERATIONS, early_stopping=False, random_state=0, **settings
    )
    model.fit(features(data.training_x), data.training_y)
    return _rmse(model.predict(features(data.validation_x)), data.validation_y)


_TERRAIN_SPACE = SearchSpace(
    {
        "angle": Float(0, 180),
        "length": Float(5, 200, log=True),
        "stretch": Float(1, 10, log=True),
        "kernel": Categorical(("rbf", "laplacian")),
        "n_components": Int(20, 256, log=True),
        "degree": Int(0, 6),
        "alpha": Float(1e-4, 100, log=True),
    }
)
"""Direction (degrees), mean length scale (cells) and ratio of the two length scales of a kernel,
the kernel, its number of features, the degree of the polynomial, and the penalty of both."""

_PHOTOGRAPHS_SPACE = SearchSpace(
    {
        "centred": Categorical((False, True)),
        "loss": Categorical(("squared_error", "absolute_error")),
        "learning_rate": Float(0.02, 1, log=True),
        "max_leaf_nodes": Int(4, 64, log=True),
        "min_samples_leaf": Int(1, 1000, log=True),
        "l2_regularization": Float(1e-3, 1e4, log=True),
        "max_features": Float(0.1, 1),
        "max_bins": Int(8, 255, log=True),
    }
)
"""Whether patches are split into mean and differences from it, and seven parameters of histogram
gradient boosting; ranges are our choice."""

LARGER_LEARNING_PROBLEMS: tuple[Problem, ...] = (
    Problem(
        name="real_terrain",
        space=_TERRAIN_SPACE,
        function=_terrain,
        optimum=None,
        budget=_BUDGET,
        group="real",
        half="development",
        tolerance=1.0,
        description="RMSE in metres of a kernel model of 20,000 heights of a map",
        requires=("matplotlib",),
    ),
    Problem(
        name="real_photographs",
        space=_PHOTOGRAPHS_SPACE,
        function=_photographs,
        optimum=None,
        budget=_BUDGET,
        group="real",
        half="held-out",
        tolerance=0.1,
        description="RMSE of boosting that colours 20,000 patches of photographs",
        requires=("PIL",),
    ),
)
"""Problems that train models on 20,000 points."""

"""The models of a map and of photographs."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

from mondrian_bo.benchmarks.problems import base, get_problem, installed_problems, larger_learning

pytest.importorskip("matplotlib", reason="needs the map of matplotlib")
pytest.importorskip("PIL", reason="needs pillow, to read photographs")

TERRAIN = {
    "angle": 0.0,
    "length": 30.0,
    "stretch": 1.0,
    "kernel": "rbf",
    "n_components": 100,
    "degree": 0,
    "alpha": 1.0,
}
PHOTOGRAPHS = {
    "centred": False,
    "loss": "squared_error",
    "learning_rate": 0.2,
    "max_leaf_nodes": 31,
    "min_samples_leaf": 20,
    "l2_regularization": 1.0,
    "max_features": 0.5,
    "max_bins": 64,
}


@pytest.fixture(autouse=True)
def single_threaded_blas():
    with threadpool_limits(1):  # as the runner has it
        yield


def rmse(predicted, target):
    return np.sqrt(np.mean((predicted - target) ** 2))


@pytest.mark.parametrize("load", [larger_learning.terrain, larger_learning.photographs])
def test_sizes(load):
    data = load()
    assert len(data.training_x) == len(data.training_y) == 20_000
    assert len(data.validation_x) == len(data.validation_y) == 5_000
    assert all(np.isfinite(part).all() for part in data)


def test_no_validation_cell_of_the_map_has_a_training_cell_beside_it():
    from scipy.spatial import cKDTree

    data = larger_learning.terrain()
    distance, _ = cKDTree(data.training_x).query(data.validation_x, p=1)
    assert distance.min() > 3
    assert distance.max() < 16
    assert len(np.unique(np.vstack([data.training_x, data.validation_x]), axis=0)) == 25_000


def test_patches_of_the_two_parts_are_far_apart():
    from sklearn.datasets import load_sample_images

    grey = load_sample_images().images[0].astype(float).mean(axis=2)
    windows = np.lib.stride_tricks.sliding_window_view(grey, (4, 4))
    where, twice = {}, set()
    for column in range(windows.shape[1]):
        for patch in windows[:, column].reshape(-1, 16):
            if where.setdefault(patch.tobytes(), column) != column:
                twice.add(patch.tobytes())

    def columns(patches):
        keys = [patch.tobytes() for patch in patches]
        return np.unique([where[key] for key in keys if key not in twice])

    data = larger_learning.photographs()
    training, validation = columns(data.training_x[:10_000]), columns(data.validation_x[:2_500])
    # A window is four pixels wide, and eight pixels lie between windows of the two parts.
    assert np.abs(training[:, None] - validation).min() == 12
    assert set(validation // 64) == {1, 5, 9}
    assert set((validation + 3) // 64) == {1, 5, 9}


def test_terrain_by_hand():
    data = larger_learning.terrain()
    rows = np.random.RandomState(0).permutation(20_000)[:100]
    kernel, centres = RBF(30.0), data.training_x[rows]
    # Features whose products are those of the kernel at the centres; the penalty is on weights.
    values, vectors = np.linalg.eigh(kernel(centres))
    values = np.maximum(values, 1e-12)
    features = kernel(data.training_x, centres) @ vectors / np.sqrt(values)
    penalised = np.vstack([features - features.mean(axis=0), np.eye(100)])
    targets = np.r_[data.training_y - data.training_y.mean(), np.zeros(100)]
    model = LinearRegression(fit_intercept=False).fit(penalised, targets)
    new = kernel(data.validation_x, centres) @ vectors / np.sqrt(values) - features.mean(axis=0)
    expected = rmse(new @ model.coef_ + data.training_y.mean(), data.validation_y)
    value = get_problem("real_terrain").function(TERRAIN)
    assert value == pytest.approx(expected, rel=1e-4)


def test_a_turn_by_90_degrees_exchanges_the_length_scales():
    function = get_problem("real_terrain").function
    along = function({**TERRAIN, "stretch": 4.0})
    assert function({**TERRAIN, "stretch": 4.0, "angle": 180.0}) == pytest.approx(along)
    assert function({**TERRAIN, "stretch": 4.0, "angle": 90.0}) != pytest.approx(along)
    round_kernel = function({**TERRAIN, "angle": 33.0})
    assert round_kernel == pytest.approx(function(TERRAIN))


def test_photographs_by_hand():
    data = larger_learning.photographs()
    settings = {name: value for name, value in PHOTOGRAPHS.items() if name != "centred"}
    model = HistGradientBoostingRegressor(
        max_iter=30, early_stopping=False, random_state=0, **settings
    ).fit(data.training_x, data.training_y)
    expected = rmse(model.predict(data.validation_x), data.validation_y)
    function = get_problem("real_photographs").function
    assert function(PHOTOGRAPHS) == pytest.approx(expected)
    assert function({**PHOTOGRAPHS, "centred": True}) != pytest.approx(expected)


@pytest.mark.parametrize("name", ["real_terrain", "real_photographs"])
def test_models_are_better_than_the_mean_and_their_parameters_matter(name):
    problem = get_problem(name)
    data = larger_learning.terrain() if name == "real_terrain" else larger_learning.photographs()
    points = map(problem.space.from_unit, problem.space.sample(20, np.random.default_rng(0)))
    values = [problem.function(point) for point in points]
    mean = rmse(data.training_y.mean(), data.validation_y)
    assert max(values) < 1.1 * mean
    assert min(values) < 0.95 * np.median(values)


def test_problems_are_skipped_without_the_packages_that_have_their_data(monkeypatch):
    monkeypatch.setattr(base, "find_spec", lambda name: None)
    told = []
    names = ["real_pipeline", "real_terrain", "real_photographs"]
    assert installed_problems(names, told.append) == ["real_pipeline"]
    assert told == [
        "skipping problems that need matplotlib (pip install 'mondrian-bo[bench]'): real_terrain",
        "skipping problems that need PIL (pip install pillow): real_photographs",
    ]

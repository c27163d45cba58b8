"""Functional ANOVA of models: brute-force integrals, and functions whose parts are known."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import gamma, kv

from mondrian_bo import Categorical, Condition, Float, Int, SearchSpace
from mondrian_bo.importance import Decomposition, decompose
from mondrian_bo.importance.axes import activity_patterns, new_axis
from mondrian_bo.importance.models import GaussianProcessAnova, MondrianForestAnova, scale_mixture
from mondrian_bo.optimizer.search.search_factory import columns_of
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.gaussian_process_forest.surrogate import GaussianProcessForestSurrogate

MIXED = SearchSpace(
    {
        "x": Float(0.0, 1.0),
        "kind": Categorical(("a", "b", "c")),
        "y": Float(0.0, 1.0, condition=Condition("kind", ("a", "c"))),
        "n": Int(1, 4, log=True),
    }
)


def _data(space: SearchSpace, n: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    rows = space.sample(n, rng)
    filled = np.nan_to_num(rows, nan=0.3)
    targets = np.sin(4.0 * filled[:, 0]) + filled[:, 1] * filled[:, -1] + filled.sum(axis=1)
    return rows, (targets - targets.mean()) / targets.std()


def _brute_force(
    model: GaussianProcessAnova | MondrianForestAnova,
    space: SearchSpace,
    columns: list[FloatArray],
    weights: list[FloatArray],
) -> Decomposition:
    """Sum over all combinations of nodes, of which inactive ones are left out."""
    grid = np.array(list(product(*columns)))
    active = space.snap(np.nan_to_num(grid, nan=0.5))
    rows = np.where(np.isnan(active), np.nan, grid)
    values = model.predict(rows).reshape([len(column) for column in columns])
    d = len(columns)
    letters = "ijkl"[:d]
    operands = [values, *weights]

    def marginal(kept: str) -> FloatArray:
        rest = [w for letter, w in zip(letters, weights, strict=True) if letter not in kept]
        names = [letter for letter in letters if letter not in kept]
        return np.einsum(",".join([letters, *names]) + "->" + kept, values, *rest)

    mean = float(np.einsum(",".join([letters, *letters]), *operands))
    variance = float(np.einsum(",".join([letters, *letters]), (values - mean) ** 2, *weights))
    curves = [marginal(letter) for letter in letters]
    main = np.array([w @ (c - mean) ** 2 for w, c in zip(weights, curves, strict=True)])
    pairs = np.zeros((d, d))
    for j in range(d):
        for k in range(j + 1, d):
            rest = marginal(letters[j] + letters[k]) - curves[j][:, None] - curves[k] + mean
            pairs[j, k] = pairs[k, j] = weights[j] @ rest**2 @ weights[k]
    return Decomposition(mean, variance, main, pairs, [], curves)


@pytest.mark.parametrize("missing", [False, True])
def test_forest_equals_brute_force(missing: bool) -> None:
    rows, targets = _data(MIXED, 12)
    if missing:
        rows[::3, 0] = np.nan
    model = MondrianForestAnova(MIXED, rows, targets, 2, seed=1)
    absent = 4 / 12 if missing else 0.0
    columns, weights = [], []
    for j, parameter in enumerate(MIXED.parameters):
        if isinstance(parameter, Float):
            # The middle of each interval between splits.
            ends = np.concatenate([cells.upper[:, j] for cells in model.cells])
            ends = np.unique(np.clip(ends, 0.0, 1.0))
            edges = np.unique([0.0, *ends, 1.0])
            own, widths = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
            if j == 0:
                own, widths = np.append(own, np.nan), np.append((1.0 - absent) * widths, absent)
        else:
            axis = new_axis(parameter, np.empty(0), 1, False, 0.0)
            own, widths = axis.values[:-1], axis.weights[:-1]
        columns.append(own)
        weights.append(widths)
    expected = _brute_force(model, MIXED, columns, weights)
    found = decompose(MIXED, rows, targets, surrogate="forest", n_estimators=2, seed=1)
    assert found.variance > 0.1
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-12)
    np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-10)
    np.testing.assert_allclose(found.main, expected.main, atol=1e-12)
    np.testing.assert_allclose(found.pairs, expected.pairs, atol=1e-12)
    np.testing.assert_allclose(found.curves[1][:-1], expected.curves[1], atol=1e-12)


def test_process_equals_brute_force() -> None:
    rows, targets = _data(MIXED, 25)
    nodes, own = np.polynomial.legendre.leggauss(30)
    columns, weights = [], []
    for parameter in MIXED.parameters:
        if isinstance(parameter, Float):
            columns.append(0.5 * (nodes + 1.0))
            weights.append(0.5 * own)
        else:
            axis = new_axis(parameter, np.empty(0), 1, False, 0.0)
            columns.append(axis.values[:-1])
            weights.append(axis.weights[:-1])
    expected = _brute_force(
        GaussianProcessAnova(MIXED, rows, targets, 2, 0), MIXED, columns, weights
    )
    found = decompose(MIXED, rows, targets)
    # Nodes of the quadratures differ, and the total variance is a sample's.
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-4)
    np.testing.assert_allclose(found.main, expected.main, atol=1e-3)
    np.testing.assert_allclose(found.pairs, expected.pairs, atol=1e-3)
    np.testing.assert_allclose(found.variance, expected.variance, rtol=0.01)


def test_process_with_leaves() -> None:
    """Beyond 200 rows there are leaves: curves are averages of predictions."""
    space = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    rows, targets = _data(space, 230)
    model = GaussianProcessAnova(space, rows, targets, 2, 0)
    found = decompose(space, rows, targets)
    fine = (np.arange(2000) + 0.5) / 2000
    for k in (0, 17, 40):
        x = found.axes[0].values[k]
        line = model.predict(np.column_stack([np.full(2000, x), fine]))
        assert found.curves[0][k] == pytest.approx(line.mean(), abs=2e-3)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n_dimensions", [3, 150])
def test_process_is_that_of_the_optimizer(n_dimensions: int, missing: bool) -> None:
    """Also in wide spaces, where the first fit of the hyper-parameters ends early."""
    space = SearchSpace({f"x{j}": Float(0.0, 1.0) for j in range(n_dimensions)})
    rng = np.random.default_rng(0)
    rows = space.sample(40, rng)
    targets = np.sin(4.0 * rows[:, 0]) + rows @ rng.standard_normal(n_dimensions) ** 3
    targets = (targets - targets.mean()) / targets.std()
    if missing:
        rows[::3, 0] = np.nan
    model = GaussianProcessAnova(space, rows, targets, 2, 0)
    surrogate = GaussianProcessForestSurrogate(
        columns_of(space, missing), np.random.SeedSequence(0)
    )
    surrogate.learn(rows, targets)
    np.testing.assert_array_equal(model.predict(rows), surrogate.predict(rows)[0].mean(axis=0))


@pytest.mark.parametrize("smoothness", [0.5, 2.5])
def test_scale_mixture(smoothness: float) -> None:
    distances = np.linspace(0.01, 8.0, 200)
    factors, weights = scale_mixture(smoothness)
    found = np.exp(-np.outer(distances**2, factors)) @ weights
    scaled = np.sqrt(2.0 * smoothness) * distances
    # Rasmussen2006, eq. 4.14.
    matern = 2.0 ** (1.0 - smoothness) / gamma(smoothness) * scaled**smoothness
    np.testing.assert_allclose(
        found, matern * kv(smoothness, scaled), atol=1e-4 if smoothness == 0.5 else 2e-6
    )


def test_patterns_cover_the_space() -> None:
    space = SearchSpace(
        {
            "depth": Int(1, 3),
            "a": Categorical(("u", "v"), condition=Condition("depth", (2, 3))),
            "b": Float(0.0, 1.0, condition=Condition("a", ("v",))),
            "c": Float(0.0, 1.0, condition=Condition("depth", (3,))),
        }
    )
    axes = [new_axis(p, np.empty(0), 5, False, 0.0) for p in space.parameters]
    patterns = activity_patterns(space, axes)
    chances = {}
    for masks in patterns:
        active = tuple(mask is not None for mask in masks)
        chance = np.prod(
            [axis.weights @ m for axis, m in zip(axes, masks, strict=True) if m is not None]
        )
        chances[active] = chances.get(active, 0.0) + chance
    expected = {
        (True, False, False, False): 1 / 3,
        (True, True, False, False): 1 / 6,
        (True, True, True, False): 1 / 6,
        (True, True, False, True): 1 / 6,
        (True, True, True, True): 1 / 6,
    }
    assert chances == pytest.approx(expected)


def test_too_many_patterns() -> None:
    """Nine families of two patterns: the most probable ones are kept, with all probability."""
    parameters: dict[str, Int | Float] = {}
    for i in range(9):
        parameters[f"n{i}"] = Int(1, 4)
        parameters[f"x{i}"] = Float(0.0, 1.0, condition=Condition(f"n{i}", (4,)))
    space = SearchSpace(parameters)
    axes = [new_axis(p, np.empty(0), 3, False, 0.0) for p in space.parameters]
    patterns = activity_patterns(space, axes)
    assert len(patterns) == 256
    total = sum(
        np.prod([axis.weights @ m for axis, m in zip(axes, masks, strict=True) if m is not None])
        for masks in patterns
    )
    assert total == pytest.approx(1.0)


# Functions with known parts -----------------------------------------------------------------------


def _ishigami(rows: FloatArray) -> FloatArray:
    x = np.pi * (2.0 * rows - 1.0)
    first = np.sin(x[:, 0]) * (1.0 + 0.1 * x[:, 2] ** 4)
    return np.asarray(first + 7.0 * np.sin(x[:, 1]) ** 2)


def _g_function(rows: FloatArray) -> FloatArray:
    a = np.array([0.0, 1.0, 9.0])
    return np.asarray(np.prod((np.abs(4.0 * rows - 2.0) + a) / (1.0 + a), axis=1))


G_MAIN = 1.0 / (3.0 * (1.0 + np.array([0.0, 1.0, 9.0])) ** 2)
G_TOTAL = float(np.prod(1.0 + G_MAIN) - 1.0)
KNOWN = {
    # Shares of the main effects, and of the largest interaction: Ishigami and Homma (1990),
    # Saltelli and Sobol (1995).
    "ishigami": (_ishigami, [0.314, 0.442, 0.0], (0, 2, 0.244)),
    "g": (_g_function, G_MAIN / G_TOTAL, (0, 1, G_MAIN[0] * G_MAIN[1] / G_TOTAL)),
    "additive": (lambda u: u @ np.array([2.0, 1.0, 0.0]), [0.8, 0.2, 0.0], (0, 1, 0.0)),
    "interaction": (lambda u: (u[:, 0] - 0.5) * (u[:, 1] - 0.5), [0.0] * 3, (0, 1, 1.0)),
}


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize(("surrogate", "tolerance"), [("gaussian_process", 0.07), ("forest", 0.3)])
def test_known_functions(name: str, surrogate: str, tolerance: float) -> None:
    function, main, (j, k, pair) = KNOWN[name]
    space = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0), "z": Float(0.0, 1.0)})
    rows = np.random.default_rng(1).random((150, 3))
    values = function(rows)
    found = decompose(
        space,
        rows,
        (values - values.mean()) / values.std(),
        surrogate=surrogate,  # type: ignore[arg-type]
    )
    np.testing.assert_allclose(found.shares(), main, atol=tolerance)
    assert found.pairs[j, k] / found.variance == pytest.approx(pair, abs=tolerance)
    half = found.shares() + 0.5 * found.pairs.sum(axis=0) / found.variance
    np.testing.assert_allclose(found.shares(interactions=True), half)


def test_parameters_that_act_by_their_logarithm():
    """The surrogate of a search would warp the first one."""
    space = SearchSpace({name: Float(0.0, 1.0) for name in "xyz"})
    rows = np.random.default_rng(0).random((80, 3))

    def function(points):
        return (np.log10(points[:, 0] + 1e-5) + 2.5) ** 2 + 3.0 * (points[:, 1] - 0.4) ** 2

    values = function(rows)
    found = decompose(space, rows, (values - values.mean()) / values.std())
    fine = (np.arange(10_000) + 0.5) / 10_000
    parts = [
        np.var(
            function(np.column_stack([fine if k == j else np.full(10_000, 0.5) for k in range(3)]))
        )
        for j in range(2)
    ]
    expected = np.array(parts) / np.var(values)
    np.testing.assert_allclose(found.main[:2], expected, rtol=0.3)
    assert found.main[2] < 0.01

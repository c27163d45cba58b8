"""Solutions of all states at once equal solutions of each."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_refits import refit_kernel

from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths import nested_elimination
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cuts import (
    EMPTY,
    CellHistory,
    CutSequence,
    split,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.kernel_path import kernel_path
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.nested_elimination import (
    Elimination,
    StateFits,
    solve_states,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import sample_path_data


def make(n=90, n_val=40, n_trees=4, max_lifetime=5.0, n_features=2, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n + n_val, n_features)), 2)
    y = np.sin(7.0 * X[:, 0]) + X[:, -1] ** 2 + 0.1 * rng.normal(size=len(X))
    return sample_path_data(
        X[:n],
        y[:n],
        X[n:],
        y[n:],
        n_estimators=n_trees,
        max_lifetime=max_lifetime,
        random_state=seed,
    )


def solutions(data, ridge, states):
    """The history, rows and solutions by state."""
    history = CellHistory(CutSequence(data.partitions, len(data.targets)))
    rows, parts = solve_states(history, data.targets, ridge, states)
    by_state = {}
    for fits in parts:
        for k in range(len(fits.squares)):
            state = int(states[fits.first + k])
            assert state not in by_state
            by_state[state] = (
                fits.weights[:, k],
                fits.log_determinants[k],
                fits.squares[k],
            )
    assert list(by_state) == states.tolist()
    return history, rows, by_state


def assert_solves_every_state(data, ridge, states, tolerance=1e-8):
    n = len(data.targets)
    cuts = CutSequence(data.partitions, n)
    history, rows, by_state = solutions(data, ridge, states)
    cells = cuts.first_cells()[:n]
    for position in range(len(cuts) + 1):
        if position > 0:
            split_training(cells, cuts[position - 1])
        state = int(history.state_of_position[position])
        if state not in by_state:
            continue
        weights, log_determinant, squares = by_state[state]
        names, places = np.unique(cells, return_inverse=True)
        features = np.zeros((n, len(names)))
        np.put_along_axis(features, places.reshape(cells.shape), cells.shape[1] ** -0.5, axis=1)
        matrix = features.T @ features + ridge * np.eye(len(names))
        expected = np.linalg.solve(matrix, features.T @ data.targets)
        assert len(names) == history.n_cells(state)
        assert np.abs(weights[rows[:n]] - expected[places.reshape(cells.shape)]).max() < tolerance
        determinant = np.linalg.slogdet(matrix)[1]
        assert abs(log_determinant - determinant) < tolerance * max(1.0, abs(determinant))
        assert abs(squares - expected @ expected) < tolerance * max(1.0, squares)


def split_training(cells, cut):
    n = len(cells)
    for members, cell in ((cut.left_members, cut.left), (cut.right_members, cut.right)):
        cells[members[members < n], cut.tree] = cell


@pytest.mark.parametrize(
    ("few", "chunk"), [(0, 1), (1, 2), (4, 8), (5, 7), (16, 8), (32, 128), (500, 500)]
)
@pytest.mark.parametrize("ridge", [1e-1, 1e-4])
def test_block_sizes(monkeypatch, few, chunk, ridge):
    monkeypatch.setattr(nested_elimination, "_FEW", few)
    monkeypatch.setattr(nested_elimination, "_CHUNK", chunk)
    data = make(seed=few)
    n_states = int(CellHistory(CutSequence(data.partitions, 90)).state_of_position[-1]) + 1
    assert n_states > 20
    assert_solves_every_state(data, ridge, np.arange(n_states))
    assert_solves_every_state(data, ridge, np.arange(0, n_states, 3))
    assert_solves_every_state(data, ridge, np.array([0, 1, n_states - 2, n_states - 1]))
    assert_solves_every_state(data, ridge, np.array([n_states // 2]))


@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 40),
    n_val=st.integers(1, 20),
    n_trees=st.integers(1, 6),
    n_features=st.integers(1, 3),
    max_lifetime=st.floats(0.1, 8.0),
    log_ridge=st.floats(-4.0, 1.0),
    n_evaluations=st.one_of(st.none(), st.integers(2, 30)),
    few=st.integers(0, 12),
    chunk=st.integers(1, 12),
)
@settings(max_examples=40)
def test_path_equals_refitting(
    seed, n, n_val, n_trees, n_features, max_lifetime, log_ridge, n_evaluations, few, chunk
):
    """With fewer and with more cells than points, and cuts of validation points alone."""
    data = make(max(n, 2), n_val, n_trees, max_lifetime, n_features, seed)
    ridge = 10.0**log_ridge
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nested_elimination, "_FEW", few)
        patch.setattr(nested_elimination, "_CHUNK", chunk)
        path = kernel_path(data, ridge, 1.0, n_evaluations=n_evaluations, keep_weights=True)
    for i, lifetime in enumerate(path.lifetimes):
        training, validation, evidence, weights, n_cells = refit_kernel(data, lifetime, ridge, 1.0)
        assert path.n_cells[i] == n_cells
        assert abs(path.training_error[i] - training) < 1e-8
        assert abs(path.validation_error[i] - validation) < 1e-8
        assert abs(path.log_marginal_likelihood[i] - evidence) < 1e-8 * max(1.0, abs(evidence))
        assert np.abs(path.weights(i)[0] - weights).max() < 1e-8


@pytest.mark.parametrize("seed", [0, 1])
def test_very_little_noise(seed):
    """Errors stay as small as those of a fit, where those of updates add up."""
    data = make(150, 40, 5, 5.0, seed=seed)
    path = kernel_path(data, 1e-6, 1.0)
    assert path.n_cells[-1] < 150
    for i in range(0, len(path), 7):
        training, validation, evidence, *_ = refit_kernel(data, path.lifetimes[i], 1e-6, 1.0)
        assert abs(path.training_error[i] - training) < 1e-8
        assert abs(path.validation_error[i] - validation) < 1e-8
        assert abs(path.log_marginal_likelihood[i] - evidence) < 1e-8 * abs(evidence)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_history_follows_the_cuts(seed):
    data = make(30, 30, 3, 6.0, seed=seed)
    cuts = CutSequence(data.partitions, 30)
    history = CellHistory(cuts)
    current = cuts.first_cells()
    assert np.any(np.diff(history.state_of_position) == 0)
    for position in range(len(cuts) + 1):
        if position > 0:
            split(current, cuts[position - 1])
        cells, places = history.cells(int(history.state_of_position[position]))
        known = current != EMPTY
        assert np.array_equal(known, history.cut_off > position)
        assert np.array_equal(cells[places][known], current[known])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_elimination_leaves_the_other_weights(seed):
    rng = np.random.default_rng(seed)
    features, ridge = rng.normal(size=(30, 9)), 0.01
    gram, moments = features.T @ features, features.T @ rng.normal(size=30)
    eliminated = rng.random(9) < 0.5
    eliminated[:2] = True, False
    rest = Elimination(gram, moments, eliminated, ridge)
    left = rest.gram + ridge * np.eye(len(rest.moments))
    expected = np.linalg.solve(gram + ridge * np.eye(9), moments)
    inner = np.linalg.solve(left, rest.moments)
    assert np.allclose(inner, expected[~eliminated], rtol=1e-9)
    fits = StateFits(
        3, inner[:, None], np.array([np.linalg.slogdet(left)[1]]), np.array([inner @ inner])
    )
    whole = rest.extended(fits)
    assert whole.first == 3
    assert np.allclose(whole.weights[:, 0], expected, rtol=1e-9)
    determinant = np.linalg.slogdet(gram + ridge * np.eye(9))[1]
    assert np.isclose(whole.log_determinants[0], determinant, rtol=1e-9)
    assert np.isclose(whole.squares[0], expected @ expected, rtol=1e-9)


@pytest.mark.parametrize("few", [0, 500])
def test_noise_that_is_too_little(monkeypatch, few):
    monkeypatch.setattr(nested_elimination, "_FEW", few)
    data = make(90, 10, 3, 3.0)
    with pytest.raises(np.linalg.LinAlgError, match="noise variance is too small"):
        kernel_path(data, 1e-300, 1.0)

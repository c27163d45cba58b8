"""Updated systems against systems solved from scratch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inverse_system import InverseSystem

from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cholesky_system import CholeskySystem

FORMS = [CholeskySystem, InverseSystem]


class Dense:
    """The matrix itself, changed in the plain way."""

    def __init__(self, matrix, moments):
        self.matrix, self.moments = matrix.copy(), moments.copy()

    def append(self, columns, corner, moments):
        self.matrix = np.block([[self.matrix, columns.T], [columns, corner]])
        self.moments = np.concatenate([self.moments, moments])

    def delete(self, index):
        keep = np.delete(np.arange(len(self.moments)), index)
        self.matrix, self.moments = self.matrix[np.ix_(keep, keep)], self.moments[keep]

    def add(self, vector, value):
        self.matrix = self.matrix + np.outer(vector, vector)
        self.moments = self.moments + value * vector


def make(rng, size, n_rows=40, ridge=0.1):
    features = rng.normal(size=(n_rows, size))
    return features.T @ features + ridge * np.eye(size), rng.normal(size=size)


def assert_solved(system, dense, tolerance=1e-9):
    assert system.size == len(dense.moments)
    expected = np.linalg.solve(dense.matrix, dense.moments)
    assert np.allclose(system.solution(), expected, rtol=tolerance, atol=tolerance)
    determinant = np.linalg.slogdet(dense.matrix)[1]
    assert abs(system.log_determinant() - determinant) < tolerance * (1.0 + abs(determinant))


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
@settings(max_examples=60)
def test_any_sequence_of_updates(form, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    pool, moments = make(rng, 24)
    free = list(range(3, 24))
    members = [0, 1, 2]
    dense = Dense(pool[:3, :3], moments[:3])
    system = form(pool[:3, :3], moments[:3])
    kinds = data.draw(st.lists(st.sampled_from(["append", "delete", "add"]), max_size=14))
    extra = np.zeros_like(pool)
    for kind in kinds:
        if kind == "append" and len(free) > 1:
            n_new = data.draw(st.integers(1, 2))
            added, free = free[:n_new], free[n_new:]
            full = pool + extra
            arguments = full[np.ix_(added, members)], full[np.ix_(added, added)], moments[added]
            members += added
        elif kind == "delete" and len(members) > 1:
            index = data.draw(st.integers(0, len(members) - 1))
            del members[index]
            arguments = (index,)
        elif kind == "add":
            vector = np.zeros(24)
            vector[members] = rng.normal(size=len(members)) * (rng.random(len(members)) < 0.5)
            extra += np.outer(vector, vector)
            value = float(rng.normal())
            arguments = vector[members], value
        else:
            continue
        for one in (system, dense):
            getattr(one, kind)(*arguments)
    assert_solved(system, dense)


def test_cholesky_form_bears_thousands_of_updates():
    """Nothing is subtracted from the matrix, so errors do not add up."""
    rng = np.random.default_rng(0)
    features = rng.random((30, 60)) < 0.1
    ridge = 1e-4
    columns = features.astype(float)
    members = list(range(20))
    gram = columns.T @ columns + ridge * np.eye(60)
    moments = rng.normal(size=60)
    system = CholeskySystem(gram[np.ix_(members, members)], moments[members])
    for _ in range(3000):
        index = int(rng.integers(len(members)))
        system.delete(index)
        del members[index]
        new = int(rng.choice(np.setdiff1d(np.arange(60), members)))
        system.append(gram[np.ix_([new], members)], gram[[[new]], [[new]]], moments[[new]])
        members.append(new)
    expected = np.linalg.solve(gram[np.ix_(members, members)], moments[members])
    scale = np.abs(expected).max()
    assert np.abs(system.solution() - expected).max() < 1e-8 * scale


def test_copy_is_independent():
    matrix, moments = make(np.random.default_rng(1), 6)
    system = CholeskySystem(matrix, moments)
    before = system.solution()
    copy = system.copy()
    copy.add(np.ones(6), 1.0)
    copy.delete(2)
    assert np.array_equal(system.solution(), before)
    dense = Dense(matrix, moments)
    dense.add(np.ones(6), 1.0)
    dense.delete(2)
    assert_solved(copy, dense)


def test_half_solve_and_new_moments():
    rng = np.random.default_rng(2)
    matrix, moments = make(rng, 7)
    system = CholeskySystem(matrix, moments)
    vectors = rng.normal(size=(7, 3))
    squares = np.square(system.half_solve(vectors)).sum(axis=0)
    assert np.allclose(squares, np.diag(vectors.T @ np.linalg.solve(matrix, vectors)))
    system.set_moments(vectors[:, 0])
    assert np.allclose(system.solution(), np.linalg.solve(matrix, vectors[:, 0]))


@pytest.mark.parametrize("form", FORMS)
def test_border_that_is_not_positive_definite(form):
    system = form(np.eye(2), np.zeros(2))
    with pytest.raises(np.linalg.LinAlgError, match="noise variance is too small"):
        system.append(np.array([[1.0, 1.0]]), np.array([[1.0]]), np.zeros(1))


def test_matrix_that_is_not_positive_definite():
    with pytest.raises(np.linalg.LinAlgError, match="noise variance is too small"):
        CholeskySystem(np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros(2))

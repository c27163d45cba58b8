"""Fronts, hypervolumes and boxes against plain loops, inclusion-exclusion and moocore."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from boxes import corners_of
from hypothesis import given
from hypothesis import strategies as st

from mondrian_bo.acquisitions import BoxDecomposition, decompose, hypervolume, non_dominated


def sphere(rng, size, n_objectives):
    """Points in [0, 1] of which none dominates another."""
    points = np.abs(rng.normal(size=(size, n_objectives)))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def plain_non_dominated(values):
    return np.array(
        [
            not any((other >= value).all() and (other > value).any() for other in values)
            for value in values
        ],
        dtype=bool,
    )


def plain_hypervolume(points, reference):
    """Inclusion and exclusion of the boxes between the reference and all subsets of points."""
    total = 0.0
    for size in range(1, len(points) + 1):
        for subset in itertools.combinations(points, size):
            sides = np.maximum(np.min(subset, axis=0) - reference, 0.0)
            total -= (-1) ** size * sides.prod()
    return total


# Grids of few values have ties, copies and dominated points; the reference is among the values.
grids = (
    st.integers(1, 4)
    .flatmap(
        lambda k: st.lists(
            st.lists(st.integers(0, 5), min_size=k, max_size=k), min_size=1, max_size=9
        )
    )
    .map(lambda rows: np.array(rows, dtype=float))
)


@given(grids)
def test_non_dominated_against_all_pairs(values):
    np.testing.assert_array_equal(non_dominated(values), plain_non_dominated(values))


@pytest.mark.parametrize("n_objectives", [1, 2, 3, 4, 5])
def test_non_dominated_of_many(n_objectives):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, n_objectives)).round(1)
    values[::7] = -np.inf
    values[5, 0] = np.inf
    np.testing.assert_array_equal(non_dominated(values), plain_non_dominated(values))


def test_non_dominated_keeps_copies():
    values = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [1.0, 1.0], [2.0, 0.0]])
    assert non_dominated(values).tolist() == [True, True, True, False, False]
    assert non_dominated(np.empty((0, 3))).tolist() == []


@given(grids)
def test_hypervolume_against_inclusion_exclusion(points):
    reference = np.ones(points.shape[1])
    assert hypervolume(points, reference) == pytest.approx(plain_hypervolume(points, reference))


@pytest.mark.parametrize(("n_objectives", "size"), [(2, 300), (3, 80), (4, 40)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_hypervolume_against_moocore(n_objectives, size, sign):
    moocore = pytest.importorskip("moocore")
    rng = np.random.default_rng(0)
    points = sign * sphere(rng, size, n_objectives)
    points[::5] -= 0.1
    points[::7] = points[1]
    reference = np.full(n_objectives, np.quantile(points, 0.05))
    expected = moocore.hypervolume(points, ref=reference, maximise=True)
    assert hypervolume(points, reference) == pytest.approx(expected, rel=1e-13)


def test_hypervolume_of_thin_layers_does_not_cancel():
    """The volume is tiny beside that of the box around the front, which a difference would show."""
    thin = 1.0 + 1e-9
    points = np.array([[thin, thin, 1e9], [thin, 1e9, thin], [1e9, thin, thin]])
    gap, side = thin - 1.0, 1e9 - 1.0
    expected = 3.0 * gap**2 * side - 2.0 * gap**3
    assert hypervolume(points, np.ones(3)) == pytest.approx(expected, rel=1e-14)


@given(grids, st.permutations(range(4)), st.integers(-5, 5), st.integers(1, 5))
def test_hypervolume_under_transformations(points, order, shift, factor):
    n_objectives = points.shape[1]
    reference = np.ones(n_objectives)
    volume = hypervolume(points, reference)
    columns = [k for k in order if k < n_objectives]
    assert hypervolume(points[:, columns], reference) == volume
    assert hypervolume(points[::-1] + shift, reference + shift) == volume
    assert hypervolume(points * factor, reference * factor) == volume * factor**n_objectives


def check_boxes(front, reference, boxes):
    """The boxes are disjoint, and with what is dominated they fill a box around everything."""
    lower, upper = corners_of(boxes)
    assert (lower < upper).all()
    assert (lower >= reference).all()
    # Disjoint: of every two, one ends before the other begins, in some objective.
    apart = (upper[:, None] <= lower[None]) | (upper[None] <= lower[:, None])
    assert (apart.any(axis=2) | np.eye(len(lower), dtype=bool)).all()
    top = np.maximum(front.max(axis=0, initial=-np.inf), reference) + 1.0
    inside = (np.minimum(upper, top) - lower).prod(axis=1).sum()
    dominated = hypervolume(front, reference)
    assert inside + dominated == pytest.approx((top - reference).prod(), rel=1e-12)
    # No box reaches into what a point dominates.
    assert not (lower[:, None] < np.minimum(front, upper[:, None])).all(axis=2).any()


@given(grids)
def test_boxes_of_grids(front):
    reference = np.ones(front.shape[1])
    check_boxes(front, reference, decompose(front, reference))


@pytest.mark.parametrize(("n_objectives", "size"), [(1, 5), (2, 100), (3, 60), (4, 25), (5, 12)])
def test_boxes_of_fronts(n_objectives, size):
    rng = np.random.default_rng(1)
    reference = np.full(n_objectives, -0.1)
    for front in (sphere(rng, size, n_objectives), 1.0 - sphere(rng, size, n_objectives)):
        check_boxes(front, reference, decompose(front, reference))


def test_numbers_of_boxes():
    """Yang et al. (2019): p + 1 with two objectives, and 2 p + 1 with three."""
    rng = np.random.default_rng(2)
    for n_objectives, n_boxes in [(1, 1), (2, 41), (3, 81)]:
        front = sphere(rng, 40, n_objectives)
        boxes = decompose(front, np.full(n_objectives, -1.0))
        assert len(boxes.lower) == n_boxes
        # Dominated points and copies add none.
        more = np.concatenate([front, front[:5], front - 0.1])
        assert len(decompose(more, np.full(n_objectives, -1.0)).lower) == n_boxes


@pytest.mark.parametrize("n_objectives", [1, 2, 3, 4])
def test_without_a_front_the_region_is_one_box(n_objectives):
    reference = np.arange(n_objectives, dtype=float)
    for front in (np.empty((0, n_objectives)), reference[None], reference[None] - 1.0):
        boxes = decompose(front, reference)
        lower, upper = corners_of(boxes)
        np.testing.assert_array_equal(lower, reference[None])
        np.testing.assert_array_equal(upper, np.full((1, n_objectives), np.inf))
        assert hypervolume(front, reference) == 0.0


def test_coordinates_are_shared():
    front = np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]])
    boxes = decompose(front, np.zeros(2))
    assert isinstance(boxes, BoxDecomposition)
    np.testing.assert_array_equal(boxes.coordinates, [[0.0, 1.0, 2.0, 3.0, np.inf]] * 2)
    assert boxes.lower.flags.c_contiguous
    assert boxes.upper.flags.c_contiguous


@pytest.mark.parametrize("function", [decompose, hypervolume])
def test_clear_errors(function):
    with pytest.raises(ValueError, match="NaN"):
        function(np.array([[1.0, np.nan]]), np.zeros(2))
    with pytest.raises(ValueError, match="infinitely good"):
        function(np.array([[1.0, np.inf]]), np.zeros(2))
    with pytest.raises(ValueError, match="2 finite entries"):
        function(np.ones((1, 2)), np.zeros(3))
    with pytest.raises(ValueError, match="2 finite entries"):
        function(np.ones((1, 2)), np.array([0.0, -np.inf]))
    with pytest.raises(ValueError, match="one column per objective"):
        function(np.ones(3), np.zeros(3))


def test_clear_errors_of_non_dominated():
    with pytest.raises(ValueError, match="NaN"):
        non_dominated(np.array([[1.0, np.nan]]))
    with pytest.raises(ValueError, match="one column per objective"):
        non_dominated(np.ones(3))
    with pytest.raises(ValueError, match="one column per objective"):
        non_dominated(np.ones((3, 0)))

"""Points within boxes, beside numpy."""

import numpy as np
import pytest

from mondrian_bo.trees.tree import lie_within


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 5), (1, 7, 2), (3, 4, 2)])
def test_some_or_none_outside(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=shape).astype(dtype)
    # Points on the boundary are within; one end at most is too narrow, by as little as can be.
    box = np.stack([points.min(axis=(0, 1)), points.max(axis=(0, 1))]).astype(np.float64)
    assert lie_within(points, box)
    side, d = rng.integers(2), rng.integers(shape[2])
    box[side, d] = np.nextafter(box[side, d], -box[side, d] + (1 if side == 0 else -1) * 1e9)
    inside = np.all((points >= box[0]) & (points <= box[1]))
    assert not inside
    assert not lie_within(points, box)


@pytest.mark.parametrize("where", [0, 1])
def test_what_is_not_a_number_is_not_within(where):
    points = np.zeros((1, 2, 2))
    points[0, where, 1] = np.nan
    assert not lie_within(points, np.array([[-np.inf] * 2, [np.inf] * 2]))


def test_nothing_lies_in_the_range_of_no_points():
    empty = np.array([[np.inf], [-np.inf]])
    assert not lie_within(np.zeros((1, 1, 1)), empty)
    assert lie_within(np.zeros((1, 0, 1)), empty)


def test_views():
    points = np.arange(24.0).reshape(2, 6, 2)
    box = np.array([[2.0, 3.0], [16.0, 17.0]])
    assert lie_within(points[:, 1:3], box)
    assert not lie_within(points[:, 1:4], box)
    assert not lie_within(points[:, 0:2], box)

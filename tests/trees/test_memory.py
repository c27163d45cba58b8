import mmap

import numpy as np
import pytest

from mondrian_bo.trees.memory import mapped_zeros, resized

LARGE = 1 << 20


@pytest.mark.parametrize("has_maps", [True, False])
@pytest.mark.parametrize("shape", [(0,), (3,), (4, 0, 2), (2, 5000, 3)])
def test_mapped_zeros(monkeypatch, shape, has_maps):
    if not has_maps:
        monkeypatch.delattr(mmap, "MAP_ANONYMOUS")
    zeros = mapped_zeros(shape, np.float32)
    assert zeros.shape == shape
    assert zeros.dtype == np.float32
    assert not zeros.any()
    zeros[...] = 1.0
    assert zeros.flags.c_contiguous
    assert zeros.sum() == zeros.size


@pytest.mark.parametrize("n", [10, LARGE])
@pytest.mark.parametrize("axis", [0, 1])
def test_resized(n, axis):
    array = np.arange(2 * n, dtype=np.int32).reshape((n, 2) if axis == 0 else (2, n))
    grown = resized(array, axis, 3 * n)
    assert grown.dtype == array.dtype
    assert grown.shape[axis] == 3 * n
    old, new = np.split(grown, [n], axis)
    assert np.array_equal(old, array)
    assert not new.any()
    assert np.array_equal(resized(grown, axis, n), array)
    assert resized(array, axis, n) is array
    few, none = np.split(resized(array, axis, n + 1, used=3), [3], axis)
    assert np.array_equal(few, array[:3] if axis == 0 else array[:, :3])
    assert not none.any()

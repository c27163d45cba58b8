"""Arrays whose memory is no more than what is used of them."""

from __future__ import annotations

import math
import mmap
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mondrian_bo.array_types import AnyArray

_LARGE = 1 << 20
"""Bytes from which on room for more entries is asked for without numpy."""

Scalar = TypeVar("Scalar", bound=np.generic)


def mapped_zeros(shape: tuple[int, ...], dtype: DTypeLike) -> AnyArray:
    """Return zeros in memory of their own, where the system has it.

    Its pages become resident one by one, as they are written to, and are given back with the array.
    Numpy asks for pages of 2 MB, of which one write makes all resident: of trees that have room for
    many nodes and use few, most would be. What malloc has once given out stays with the process as
    long as something else lies behind it.
    """
    kind = np.dtype(dtype)
    length = math.prod(shape)
    if length == 0 or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.zeros(shape, dtype=kind)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1, length * kind.itemsize, flags=flags)
    return np.frombuffer(memory, kind, length).reshape(shape)


def resized(
    array: NDArray[Scalar], axis: int, length: int, used: int | None = None
) -> NDArray[Scalar]:
    """Return an array whose `axis` has the given length: cut off, or padded with zeros.

    It is a copy, unless the length is right already. No more than the first `used` entries are
    copied: pages of memory that are not written to are never resident.
    """
    if array.shape[axis] == length:
        return array
    shape = list(array.shape)
    shape[axis] = length
    n_kept = min(length, array.shape[axis], length if used is None else used)
    kept = [slice(None)] * array.ndim
    kept[axis] = slice(0, n_kept)
    # Room that is soon filled is better had in large pages.
    may_stay_empty = length > 1.5 * n_kept and math.prod(shape) * array.itemsize >= _LARGE
    make = mapped_zeros if may_stay_empty else np.zeros
    result: NDArray[Scalar] = make(tuple(shape), array.dtype)
    result[tuple(kept)] = array[tuple(kept)]
    return result

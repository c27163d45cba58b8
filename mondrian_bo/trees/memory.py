"""Arrays with spare capacity that takes no physical memory until it is written to."""

from __future__ import annotations

import math
import mmap
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mondrian_bo.shared.array_types import AnyArray

_LARGE = 1 << 20
"""Smallest size in bytes of arrays whose spare capacity is mapped: half of a huge page of Linux."""

Scalar = TypeVar("Scalar", bound=np.generic)
"""Type of the entries of an array."""


def mapped_zeros(shape: tuple[int, ...], dtype: DTypeLike) -> AnyArray:
    """Return zeros in a memory mapping of their own, if the system has anonymous mappings.

    A page becomes resident when it is first written to, and the system gets all pages back when the
    array is deleted. `numpy.zeros` asks for huge pages of 2 MB: one write makes 2 MB resident, so
    that most of an array with spare capacity would be. Its memory also comes from malloc, which may
    keep it after the array is deleted.
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
    """Return an array whose `axis` has a given length: truncated, or padded with zeros.

    The result is a copy, unless the length is right already. Only the first `used` entries are
    copied (default: all), so that the pages of unused entries stay out of memory.
    """
    if array.shape[axis] == length:
        return array
    shape = list(array.shape)
    shape[axis] = length
    n_kept = min(length, array.shape[axis], length if used is None else used)
    kept = [slice(None)] * array.ndim
    kept[axis] = slice(0, n_kept)
    # Capacity that is soon used is faster in huge pages, which numpy asks for.
    may_stay_empty = length > 1.5 * n_kept and math.prod(shape) * array.itemsize >= _LARGE
    make = mapped_zeros if may_stay_empty else np.zeros
    result: NDArray[Scalar] = make(tuple(shape), array.dtype)
    result[tuple(kept)] = array[tuple(kept)]
    return result

"""Explicit random streams: one SplitMix64 state per tree.

A stream is a ``uint64`` array of shape (1,) among the arrays of its tree. The same seed therefore
grows the same tree with any number of threads, and undoing an insertion also undoes its random
draws. SplitMix64 (Steele, Lea and Flood 2014) passes BigCrush and has a single word of state.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.trees.compiling import BORROWING

_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
"""Step of the state from draw to draw: 2**64 over the golden ratio, as SplitMix64 has it."""

_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_1 = np.uint64(30)
_SHIFT_2 = np.uint64(27)
_SHIFT_3 = np.uint64(31)
"""Multipliers and shifts of the output function of SplitMix64 ("mix13" of Stafford)."""

_SHIFT_TO_53_BITS = np.uint64(11)
"""Shift that leaves the upper 53 of 64 bits, the precision of a double."""

_UNIT = 2.0**-53
"""Factor that maps 53 bits to a double in [0, 1)."""


def make_streams(seed: np.random.SeedSequence, n_streams: int) -> NDArray[np.uint64]:
    """Return the initial states of independent streams, shape (n_streams, 1).

    Parameters
    ----------
    seed : numpy.random.SeedSequence
        Source of entropy; the i-th state depends on it and on i alone, so a forest's first trees
        do not change when trees are added.
    n_streams : int
        Number of streams.
    """
    return np.array(
        [child.generate_state(1, np.uint64) for child in seed.spawn(n_streams)], dtype=np.uint64
    ).reshape(n_streams, 1)


@njit(**BORROWING)
def mix(word):  # type: ignore[no-untyped-def]
    """Scramble 64 bits (the output function of SplitMix64)."""
    word = (word ^ (word >> _SHIFT_1)) * _MULTIPLIER_1
    word = (word ^ (word >> _SHIFT_2)) * _MULTIPLIER_2
    return word ^ (word >> _SHIFT_3)


@njit(**BORROWING)
def uniform(stream):  # type: ignore[no-untyped-def]
    """Draw from [0, 1) and advance the stream."""
    stream[0] += _INCREMENT
    return (mix(stream[0]) >> _SHIFT_TO_53_BITS) * _UNIT


@njit(**BORROWING)
def exponential(stream):  # type: ignore[no-untyped-def]
    """Draw from the exponential distribution with rate 1 and advance the stream."""
    return -math.log1p(-uniform(stream))


@njit(**BORROWING)
def exponential_below(stream, limit):  # type: ignore[no-untyped-def]
    """Draw as `exponential` does; may return infinity for a draw that is at least `limit`.

    An exponential number is at least the uniform number it is computed from. So if the uniform
    number reaches `limit`, no logarithm is needed.
    """
    share = uniform(stream)
    return -math.log1p(-share) if share < limit else math.inf


@njit(**BORROWING)
def hashed_word(key, item):  # type: ignore[no-untyped-def]
    """Return 64 random bits that are a fixed function of a key and an item; they can be a key."""
    return mix(key + (np.uint64(item) + np.uint64(1)) * _INCREMENT)


@njit(**BORROWING)
def hashed_uniform(key, item):  # type: ignore[no-untyped-def]
    """Return a number in (0, 1) that is a fixed function of a key and an item.

    Random functions over a tree are drawn lazily with it: node ``item`` of draw ``key`` has the
    same number in whatever order nodes are visited.
    """
    return ((hashed_word(key, item) >> _SHIFT_TO_53_BITS) + 0.5) * _UNIT


@njit(**BORROWING)
def hashed_normal(key, item):  # type: ignore[no-untyped-def]
    """Return a standard normal number, a fixed function of a key and an item (Box-Muller)."""
    radius = math.sqrt(-2.0 * math.log(hashed_uniform(key, 2 * item)))
    return radius * math.cos(2.0 * math.pi * hashed_uniform(key, 2 * item + 1))

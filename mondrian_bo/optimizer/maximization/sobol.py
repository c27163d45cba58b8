"""Points of the Sobol sequence, without `scipy.stats`, whose import takes most of a second.

The points are those of `scipy.stats.qmc.Sobol(d, scramble=False)`, which takes over in more than
40 dimensions.

References
----------
S. Joe and F. Y. Kuo (2008), Constructing Sobol sequences with better two-dimensional projections.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mondrian_bo.shared.array_types import FloatArray, IntArray

_N_BITS = 30
"""Binary digits of a coordinate, as many as scipy takes."""

# fmt: off
_DIRECTIONS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (3, (1,)),
    (7, (1, 3)),
    (11, (1, 3, 1)),
    (13, (1, 1, 1)),
    (19, (1, 1, 3, 3)),
    (25, (1, 3, 5, 13)),
    (37, (1, 1, 5, 5, 17)),
    (41, (1, 1, 5, 5, 5)),
    (47, (1, 1, 7, 11, 19)),
    (55, (1, 1, 5, 1, 1)),
    (59, (1, 1, 1, 3, 11)),
    (61, (1, 3, 5, 5, 31)),
    (67, (1, 3, 3, 9, 7, 49)),
    (91, (1, 1, 1, 15, 21, 21)),
    (97, (1, 3, 1, 13, 27, 49)),
    (103, (1, 1, 1, 15, 7, 5)),
    (109, (1, 3, 1, 15, 13, 25)),
    (115, (1, 1, 5, 5, 19, 61)),
    (131, (1, 3, 7, 11, 23, 15, 103)),
    (137, (1, 3, 7, 13, 13, 15, 69)),
    (143, (1, 1, 3, 13, 7, 35, 63)),
    (145, (1, 3, 5, 9, 1, 25, 53)),
    (157, (1, 3, 1, 13, 9, 35, 107)),
    (167, (1, 3, 1, 5, 27, 61, 31)),
    (171, (1, 1, 5, 11, 19, 41, 61)),
    (185, (1, 3, 5, 3, 3, 13, 69)),
    (191, (1, 1, 7, 13, 1, 19, 1)),
    (193, (1, 3, 7, 5, 13, 19, 59)),
    (203, (1, 1, 3, 9, 25, 29, 41)),
    (211, (1, 3, 5, 13, 23, 1, 55)),
    (213, (1, 3, 7, 3, 13, 59, 17)),
    (229, (1, 3, 1, 3, 5, 53, 69)),
    (239, (1, 1, 5, 5, 23, 33, 13)),
    (241, (1, 1, 7, 7, 1, 61, 123)),
    (247, (1, 1, 7, 9, 13, 61, 49)),
    (253, (1, 3, 3, 5, 3, 55, 33)),
    (285, (1, 3, 1, 15, 31, 13, 49, 245)),
    (299, (1, 3, 5, 15, 31, 59, 63, 97)),
    (301, (1, 3, 1, 11, 11, 11, 77, 249)),
)
# fmt: on
"""Joe and Kuo's table "new-joe-kuo-6" for dimensions 2 to 40: a primitive polynomial over the
integers modulo 2, its coefficients as binary digits, and the initial direction numbers."""


@lru_cache(maxsize=16)
def sobol_points(n_dimensions: int, start: int, n_points: int) -> FloatArray:
    """Return points of the sequence; they are kept, as all suggestions need the first ones.

    Parameters
    ----------
    n_dimensions : int
        Dimension d.
    start, n_points : int
        Which points; `start + n_points` is below 2**30.

    Returns
    -------
    float64 array of shape (n_points, d)
        Points in [0, 1), the first of which is the origin; not to be written to.
    """
    if n_dimensions > len(_DIRECTIONS) + 1:
        from scipy.stats import qmc

        sequence = qmc.Sobol(n_dimensions, scramble=False)
        if start == 0:
            # Without a warning that such a number of points is less balanced.
            return np.asarray(sequence.random_base2((n_points - 1).bit_length())[:n_points])
        return np.asarray(sequence.fast_forward(start).random(n_points))
    numbers = _direction_numbers(n_dimensions)
    index = np.arange(start, start + n_points)
    gray_code = index ^ (index >> 1)
    points = np.zeros((n_points, n_dimensions), dtype=np.int64)
    for bit in range((start + n_points).bit_length()):
        points ^= ((gray_code >> bit) & 1)[:, None] * numbers[:, bit]
    return points / 2.0**_N_BITS


@lru_cache(maxsize=4)
def _direction_numbers(n_dimensions: int) -> IntArray:
    """Return the direction numbers of each dimension as integers, shape (d, 30); they are kept."""
    numbers = np.ones((n_dimensions, _N_BITS), dtype=np.int64)
    for row, (polynomial, initial) in zip(numbers[1:], _DIRECTIONS, strict=False):
        degree = len(initial)
        row[:degree] = initial
        for k in range(degree, _N_BITS):
            row[k] = row[k - degree] ^ (row[k - degree] << degree)
            for i in range(1, degree):
                if polynomial >> (degree - i) & 1:
                    row[k] ^= row[k - i] << i
    return numbers << np.arange(_N_BITS - 1, -1, -1)

"""Factors and bounds that keep results within the range of float64."""

from __future__ import annotations

import numpy as np

SHRINK = 0.25
"""Factor of all values, a power of two: it is exact and makes all differences finite."""

TINY = float(np.finfo(np.float64).tiny)
"""Smallest normal float64, in place of 0 below a fraction."""

LOWEST = float(np.finfo(np.float64).min)
"""Least finite float64."""

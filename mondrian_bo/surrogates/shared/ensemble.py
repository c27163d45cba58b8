"""The arguments that every forest is made from: numbers of trees and dimensions, and the seed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Ensemble(NamedTuple):
    """How many trees a forest has, over how many dimensions, and their randomness.

    Attributes
    ----------
    n_trees : int
        Number of trees, T.
    n_dimensions : int
        Dimension d of the points.
    seed : numpy.random.SeedSequence
        Source of all randomness.
    """

    n_trees: int
    n_dimensions: int
    seed: np.random.SeedSequence

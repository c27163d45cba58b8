"""What the figures of Balog2016thesis, chapter 5, share."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _figures import arguments, progress, save, say

from mondrian_bo import Float, MondrianOptimizer, SearchSpace
from mondrian_bo.surrogates import SPSA, AskTellSearch, Greedy

__all__ = ["FREE_STEPS", "arguments", "progress", "save", "say", "strategies"]

FREE_STEPS = ("SPSA", "Bayesian")
"""Strategies whose steps may cross many cuts at once, so that they take fewer steps."""


def strategies(n_dimensions, largest, seed):
    """Return the strategies by name, for inputs in the unit cube."""
    names = [f"lifetime {d}" for d in range(n_dimensions)]
    space = SearchSpace({name: Float(1e-2, largest, log=True) for name in names})
    optimizer = MondrianOptimizer(space, direction="minimize", seed=seed)
    return {
        "greedy": Greedy(),
        "greedy, removals": Greedy(removals=True),
        "look-ahead, 5 cuts": Greedy(look_ahead=5),
        "SPSA": SPSA(unit=0.5, seed=seed),
        "Bayesian": AskTellSearch(
            optimizer, lambda params: np.array([params[name] for name in names])
        ),
    }

"""What the figures of Balog2016thesis, chapter 5, share."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _figures import arguments, save

from mondrian_bo import Float, MondrianOptimizer, SearchSpace
from mondrian_bo.surrogates import SPSA, AskTellSearch, Greedy

__all__ = ["arguments", "save", "strategies"]


def strategies(n_dimensions, largest, seed):
    """Return all strategies by name, for inputs in the unit cube."""
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

"""mondrian-bo: Mondrian forests as surrogates for sequential optimisation.

The names below are imported on first use, so that ``import mondrian_bo`` stays light and compiles
nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from mondrian_bo.integrations.optuna import MondrianSampler
    from mondrian_bo.optimizer import MondrianOptimizer
    from mondrian_bo.search_space import Categorical, Condition, Float, Int, SearchSpace

__all__ = [
    "Categorical",
    "Condition",
    "Float",
    "Int",
    "MondrianOptimizer",
    "MondrianSampler",
    "SearchSpace",
    "__version__",
]

_HOMES = {
    "Categorical": "mondrian_bo.search_space",
    "Condition": "mondrian_bo.search_space",
    "Float": "mondrian_bo.search_space",
    "Int": "mondrian_bo.search_space",
    "MondrianOptimizer": "mondrian_bo.optimizer",
    "MondrianSampler": "mondrian_bo.integrations.optuna",
    "SearchSpace": "mondrian_bo.search_space",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

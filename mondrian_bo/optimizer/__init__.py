"""The optimizer: ask and tell over a search space, with no framework around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mondrian_bo.lazy_names import lazy_names

if TYPE_CHECKING:
    from mondrian_bo.optimizer.optimizer import MondrianOptimizer
    from mondrian_bo.optimizer.search.portfolio import Arm, Portfolio

__all__ = ["Arm", "MondrianOptimizer", "Portfolio"]

_HOMES = {
    "Arm": "mondrian_bo.optimizer.search.portfolio",
    "MondrianOptimizer": "mondrian_bo.optimizer.optimizer",
    "Portfolio": "mondrian_bo.optimizer.search.portfolio",
}
"""The module that defines each lazy name."""

__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)

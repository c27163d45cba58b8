"""The optimizer: ask and tell over a search space, with no framework around it."""

from __future__ import annotations

from mondrian_bo.optimizer.optimizer import MondrianOptimizer
from mondrian_bo.optimizer.portfolio import Arm, Portfolio

__all__ = ["Arm", "MondrianOptimizer", "Portfolio"]

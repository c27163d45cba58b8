"""The optimizer as an Optuna sampler, and the model of learning curves as a pruner."""

from __future__ import annotations

from mondrian_bo.integrations.optuna.pruner import MondrianPruner
from mondrian_bo.integrations.optuna.sampler import MondrianSampler

__all__ = ["MondrianPruner", "MondrianSampler"]

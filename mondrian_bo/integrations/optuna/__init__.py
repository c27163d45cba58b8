"""The optimizer as an Optuna sampler."""

from __future__ import annotations

from mondrian_bo.integrations.optuna.sampler import MondrianSampler

__all__ = ["MondrianSampler"]

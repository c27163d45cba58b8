"""Everything that needs Optuna: the sampler, the pruner, the terminator, and how to read a study.

``sampler``, ``pruner`` and ``terminator`` are what a study is given. ``importance``,
``robust_best``, ``report`` and ``plots`` read a study, with the model of ``study_model``. The
packages ``study`` and ``suggestions`` have their parts.
"""

from __future__ import annotations

from mondrian_bo.integrations.optuna.pruner import MondrianPruner
from mondrian_bo.integrations.optuna.sampler import MondrianSampler

__all__ = ["MondrianPruner", "MondrianSampler"]

"""Loads what worker processes need: the process that they are copied from imports this module."""

from __future__ import annotations

import optuna
from worker_processes import bowl, finite, new_sampler

optuna.logging.set_verbosity(optuna.logging.CRITICAL)
# A database in memory: its libraries are loaded too, and no worker shares a file with it.
for storage, objective in (("sqlite://", bowl), (None, finite)):
    optuna.create_study(storage=storage, sampler=new_sampler()).optimize(objective, n_trials=6)

"""Loads what worker processes need: the process that they are copied from imports this module."""

from __future__ import annotations

import optuna
from worker_processes import bowl, finite, new_sampler

optuna.logging.set_verbosity(optuna.logging.CRITICAL)
for objective in (bowl, finite):
    optuna.create_study(sampler=new_sampler()).optimize(objective, n_trials=6)

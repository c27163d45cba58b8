"""One problem through Optuna and through Ax: the optimizer suggests the same trials.

The example needs Ax: pip install -c constraints.txt '.[ax]'.
"""

from __future__ import annotations

import logging
import math
import sys

import numpy as np
import optuna
from _figures import arguments, progress
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig

from mondrian_bo import MondrianSampler
from mondrian_bo.integrations.ax import mondrian_generation_strategy

N_FIRST = 10
"""Random trials that both are told."""


def branin(x1, x2):
    valley = x2 - 5.1 / (4 * math.pi**2) * x1**2 + 5 / math.pi * x1 - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x1) + 10


def through_optuna(first, n_trials):
    study = optuna.create_study(sampler=MondrianSampler(seed=0, n_startup_trials=1))
    for x1, x2 in first:
        study.enqueue_trial({"x1": x1, "x2": x2})
    study.optimize(
        lambda trial: branin(trial.suggest_float("x1", -5, 10), trial.suggest_float("x2", 0, 15)),
        n_trials=N_FIRST + n_trials,
        show_progress_bar=sys.stderr.isatty(),
    )
    return [tuple(trial.params.values()) for trial in study.trials]


def through_ax(first, n_trials):
    client = Client(random_seed=0)
    client.configure_experiment(
        parameters=[
            RangeParameterConfig("x1", (-5.0, 10.0), "float"),
            RangeParameterConfig("x2", (0.0, 15.0), "float"),
        ]
    )
    client.configure_optimization(objective="-value")
    client.set_generation_strategy(
        mondrian_generation_strategy(seed=0, initialization="none", n_startup_trials=1)
    )
    trials = list(first)
    for x1, x2 in first:
        index = client.attach_trial({"x1": x1, "x2": x2})
        client.complete_trial(index, raw_data={"value": branin(x1, x2)})
    for _ in progress(range(n_trials), desc="Ax"):
        ((index, parameters),) = client.get_next_trials(max_trials=1).items()
        client.complete_trial(index, raw_data={"value": branin(**parameters)})
        trials.append(tuple(parameters.values()))
    return trials


def main():
    options = arguments(__file__, __doc__, picture=False, quick=False, trials=20)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.getLogger("ax.api.client").setLevel(logging.WARNING)
    points = np.random.default_rng(0).random((N_FIRST, 2)) * 15.0 + np.array([-5.0, 0.0])
    first = [tuple(point) for point in points.tolist()]
    optuna_trials = through_optuna(first, options.trials)
    ax_trials = through_ax(first, options.trials)
    same = sum(a == b for a, b in zip(optuna_trials[N_FIRST:], ax_trials[N_FIRST:], strict=True))
    print(f"best through Optuna: {min(branin(*trial) for trial in optuna_trials):.4f}")
    print(f"best through Ax:     {min(branin(*trial) for trial in ax_trials):.4f}")
    print(f"the same trials: {same} of {options.trials}")


if __name__ == "__main__":
    main()

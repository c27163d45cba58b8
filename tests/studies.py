"""Optuna studies for tests: quiet, and with objectives that several files share."""

from __future__ import annotations

import math
import warnings

import optuna
from optuna.trial import TrialState

from mondrian_bo import MondrianPruner, MondrianSampler

optuna.logging.set_verbosity(optuna.logging.CRITICAL)


def make_study(sampler=None, **settings):
    """Return a study, with a `MondrianSampler` whose model is active from the fourth trial."""
    if sampler is None:
        sampler = MondrianSampler(seed=0, n_startup_trials=3)
    return optuna.create_study(sampler=sampler, **settings)


def random_study(pruner=None, **settings):
    """Return a study of random points with a pruner, a `MondrianPruner` by default."""
    sampler = optuna.samplers.RandomSampler(seed=0)
    return make_study(sampler, pruner=pruner or MondrianPruner(), **settings)


def optimize(study, objective, n_trials, **settings):
    """Run trials without the warnings that deliberate failures cause."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.optimize(objective, n_trials=n_trials, **settings)
    return study


def parameters(study):
    """Return the parameters of all trials, in order."""
    return [trial.params for trial in study.get_trials(deepcopy=False)]


def states(study):
    """Return the number of trials of each state."""
    found = [trial.state for trial in study.get_trials(deepcopy=False)]
    return {state: found.count(state) for state in TrialState if state in found}


def bowl(trial):
    """Return a quadratic of two floats, 0 at (0.3, -0.2)."""
    x, y = (trial.suggest_float(name, -1.0, 1.0) for name in "xy")
    return (x - 0.3) ** 2 + (y + 0.2) ** 2


def mixed(trial):
    """Return a sum of one term for each kind of parameter; its minimum is 0."""
    value = (trial.suggest_float("x", -2.0, 2.0) - 0.5) ** 2
    value += (trial.suggest_int("n", 1, 20) - 13) ** 2 / 100.0
    value += (math.log10(trial.suggest_float("rate", 1e-5, 1.0, log=True)) + 3.0) ** 2 / 4.0
    return value + (trial.suggest_categorical("kind", ["a", "b", None]) != "b")


def conditional(trial):
    """Return a function on a conditional space of depth three; its minimum is 0.5."""
    if trial.suggest_categorical("model", ["tree", "net"]) == "tree":
        return 1.0 + 0.1 * trial.suggest_int("leaves", 2, 40)
    layers = trial.suggest_int("layers", 1, 3)
    value = 2.0 - 0.5 * layers
    if layers == 1 or trial.suggest_categorical("second", ["relu", "tanh"]) == "tanh":
        return value + 0.4
    return value + abs(math.log10(trial.suggest_float("slope", 0.01, 1.0, log=True)) + 1.0)


CONDITIONAL_NAMES = {
    ("tree",): {"model", "leaves"},
    ("net", 1): {"model", "layers"},
    ("net", 2, "tanh"): {"model", "layers", "second"},
    ("net", 3, "tanh"): {"model", "layers", "second"},
    ("net", 2, "relu"): {"model", "layers", "second", "slope"},
    ("net", 3, "relu"): {"model", "layers", "second", "slope"},
}
"""Parameters that `conditional` suggests, by the values of their parents."""


def is_consistent(params):
    """Whether these are the parameters that `conditional` suggests."""
    branch = tuple(params[name] for name in ("model", "layers", "second") if name in params)
    return CONDITIONAL_NAMES.get(branch) == set(params)

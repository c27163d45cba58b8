"""Methods: a sampler of Optuna, alone or with a pruner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import optuna
from optuna.pruners import BasePruner, HyperbandPruner, NopPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler

__all__ = ["Method", "hyperband", "mondrian", "mondrian_pruner", "random_search", "tpe"]


class Method(NamedTuple):
    """A sampler, alone or with a pruner.

    Attributes
    ----------
    sampler : callable
        Takes a seed.
    pruner : callable or None
        Takes the number of steps of a complete trial. None prunes no trial.
    description : str
        One line for tables.
    """

    sampler: Callable[[int], BaseSampler]
    pruner: Callable[[int], BasePruner] | None
    description: str

    def new_study(self, name: str, seed: int, n_steps: int) -> optuna.Study:
        """Return a study in memory. Hyperband's choices depend on its name, ``name-seed``."""
        pruner: BasePruner = NopPruner() if self.pruner is None else self.pruner(n_steps)
        return optuna.create_study(
            study_name=f"{name}-{seed}", sampler=self.sampler(seed), pruner=pruner
        )


def mondrian(seed: int, **settings: Any) -> BaseSampler:
    """Return a `MondrianSampler`."""
    # Imported late, so that processes of other samplers do not load numba.
    from mondrian_bo.integrations.optuna.sampler import MondrianSampler

    return MondrianSampler(seed=seed, **settings)


def tpe(seed: int) -> BaseSampler:
    """Return Optuna's default sampler."""
    return TPESampler(seed=seed)


def random_search(seed: int) -> BaseSampler:
    """Return the sampler of random search."""
    return RandomSampler(seed=seed)


def mondrian_pruner(n_steps: int, **settings: Any) -> BasePruner:
    """Return a `MondrianPruner`, which needs no number of steps."""
    from mondrian_bo.integrations.optuna.pruner import MondrianPruner

    return MondrianPruner(**settings)


def hyperband(n_steps: int) -> BasePruner:
    """Return Optuna's pruner of Hyperband."""
    return HyperbandPruner(min_resource=1, max_resource=n_steps)

"""What makes the searches of one optimizer, and the models of its other outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mondrian_bo.optimizer.constraints.constraint_transform import ConstraintTransform
from mondrian_bo.optimizer.constraints.constraints import Constraints
from mondrian_bo.optimizer.models.outcome_model import NewSurrogate, NewTransform, OutcomeModel
from mondrian_bo.optimizer.models.outcome_models import OutcomeModels
from mondrian_bo.optimizer.models.outcome_transform import OutcomeTransform
from mondrian_bo.optimizer.models.search_model import SearchModel
from mondrian_bo.optimizer.models.tracked_metrics import TrackedMetrics
from mondrian_bo.optimizer.pareto.pareto_model import ParetoModel
from mondrian_bo.optimizer.pareto.pareto_trials import ParetoTrials
from mondrian_bo.optimizer.search.portfolio import Arm, SearchSettings
from mondrian_bo.optimizer.search.search import Search
from mondrian_bo.optimizer.shared.search_trials import SearchTrials
from mondrian_bo.optimizer.shared.trials import Trials
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.surrogates.base import WIDE_SPACE, Columns, Surrogate
from mondrian_bo.surrogates.registry import SurrogateName, get_surrogate

_LARGEST_REDUCTION = 3
"""Largest factor by which there are fewer candidates in a wide conditional space, our choice: a
candidate costs as much as it has columns, and most of them are inactive."""


class SearchParts(NamedTuple):
    """What all searches of one optimizer have in common.

    Attributes
    ----------
    space : SearchSpace
        The space of the trials.
    settings : SearchSettings
        Surrogate, portfolio and numbers.
    allow_missing : bool
        Whether rows may lack parameters that have no condition.
    seed : numpy.random.SeedSequence
        Source of the seeds of models of the objectives.
    outcome_seed : numpy.random.SeedSequence
        Source of the seeds of models of other outcomes.
    """

    space: SearchSpace
    settings: SearchSettings
    allow_missing: bool
    seed: np.random.SeedSequence
    outcome_seed: np.random.SeedSequence


def columns_of(space: SearchSpace, allow_missing: bool) -> Columns:
    """Return what the columns of rows of a space hold.

    Parameters
    ----------
    space : SearchSpace
        The space.
    allow_missing : bool
        Whether rows may lack parameters that have no condition.
    """
    is_plain = np.array([parameter.condition is None for parameter in space.parameters])
    unexplained = is_plain if allow_missing else None
    return Columns(space.n_choices, allow_missing or not is_plain.all(), unexplained)


class OutcomeModelParts(NamedTuple):
    """The parameters of the :class:`OutcomeModel` of a search with one objective."""

    new_surrogate: NewSurrogate
    trials: Trials
    new_transform: NewTransform
    chooses_scale: bool


class SearchFactory:
    """Makes the searches of one optimizer, which have the same settings and different seeds.

    Parameters
    ----------
    parts : SearchParts
        What the searches have in common.

    Attributes
    ----------
    settings : SearchSettings
        The settings among them.
    """

    def __init__(self, parts: SearchParts) -> None:
        self._columns = columns_of(parts.space, parts.allow_missing)
        self.settings = parts.settings
        self._seed = parts.seed
        self._outcome_seed = parts.outcome_seed

    def new(self, trials: SearchTrials, number: int) -> Search:
        """Return a search over empty `trials`, with new models.

        The searches of different numbers have different seeds.
        """
        portfolio = self.settings.portfolio
        *seeds, shift_seed, rugged_seed = _spawned(self._seed, number).spawn(
            len(portfolio.arms) + 2
        )
        new_rugged = None
        if portfolio.rugged is not None and trials.n_objectives == 1:
            new_rugged = partial(self._new_arm, portfolio.rugged, trials, rugged_seed, number)
        return Search(
            trials,
            [
                self._new_arm(arm, trials, seed, number)
                for arm, seed in zip(portfolio.arms, seeds, strict=True)
            ],
            self.settings.n_startup_trials,
            self._n_candidates(),
            np.random.default_rng(shift_seed).random(len(self._columns.n_choices)),
            new_rugged=new_rugged,
        )

    def _new_arm(
        self, arm: Arm, trials: SearchTrials, seed: np.random.SeedSequence, number: int
    ) -> tuple[SearchModel, Arm]:
        """Return an empty model of all objectives for an arm of the search of a number."""
        transform = partial(OutcomeTransform, power=arm.power)
        if isinstance(trials, ParetoTrials):
            own = [
                OutcomeModel(self._new_surrogate(arm, _spawned(seed, k)), column, transform)
                for k, column in enumerate(trials.columns)
            ]
            return ParetoModel(own, trials), arm
        assert isinstance(trials, Trials)
        new_surrogate = self._new_surrogate(arm, seed)
        parts = OutcomeModelParts(new_surrogate, trials, transform, arm.power)
        return self._new_objective(parts, number), arm

    def _n_candidates(self) -> int:
        """Return the number of candidates: fewer in wide conditional spaces."""
        n_candidates, d = self.settings.n_candidates, len(self._columns.n_choices)
        if not self._columns.may_be_absent or d <= WIDE_SPACE:
            return n_candidates
        return max(n_candidates * WIDE_SPACE // d, n_candidates // _LARGEST_REDUCTION, 1)

    def new_metrics(self) -> TrackedMetrics:
        """Return an empty collection of outcomes that are predicted and have no other role."""
        return TrackedMetrics(self._new_outcomes(0, OutcomeTransform))

    def new_constraints(self) -> Constraints:
        """Return an empty collection of constraints."""
        return Constraints(self._new_outcomes(1, ConstraintTransform))

    def _new_outcomes(self, number: int, transform: NewTransform) -> OutcomeModels:
        seed = _spawned(self._outcome_seed, number)
        new_model = partial(self._new_outcome_model, seed, transform)
        return OutcomeModels(len(self._columns.n_choices), new_model)

    def _new_outcome_model(
        self, seed: np.random.SeedSequence, transform: NewTransform, trials: Trials, number: int
    ) -> OutcomeModel:
        new_surrogate = self._new_surrogate(self.settings.portfolio.arms[0], _spawned(seed, number))
        return OutcomeModel(new_surrogate, trials, transform)

    def _new_objective(self, parts: OutcomeModelParts, number: int) -> OutcomeModel:
        """Return an empty model of the only objective, for one arm of the search of a number."""
        return OutcomeModel(*parts)

    def _new_surrogate(self, arm: Arm, seed: np.random.SeedSequence) -> NewSurrogate:
        """Return what makes the surrogates of an arm's model."""
        n_estimators = self.settings.n_estimators
        # The number of trees is that of the search's own surrogate.
        is_own = n_estimators is not None and arm.surrogate is None
        options = {**arm.options, **({"n_estimators": n_estimators} if is_own else {})}
        name = arm.surrogate or self.settings.surrogate
        return partial(_new_surrogate, name, self._columns, seed, options)


def _new_surrogate(
    name: SurrogateName, columns: Columns, seed: np.random.SeedSequence, options: Mapping[str, Any]
) -> Surrogate:
    """Return an empty surrogate, the same at every call."""
    # The sequence counts what it spawns.
    return get_surrogate(name)(columns, deepcopy(seed), **options)


def _spawned(seed: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    """Return the sequence that `seed` spawns after `number` others, without counting it."""
    return np.random.SeedSequence(
        seed.entropy, spawn_key=(*seed.spawn_key, number), pool_size=seed.pool_size
    )

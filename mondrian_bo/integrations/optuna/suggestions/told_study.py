"""A study that an optimizer is told: what was read of it, and the optimizer that knows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from mondrian_bo.integrations.optuna.study.distributions import SpaceRecipe, to_space
from mondrian_bo.integrations.optuna.study.proposals import published_parts
from mondrian_bo.integrations.optuna.study.study_reader import FinishedTrial, StudyReader
from mondrian_bo.integrations.optuna.suggestions.valid_points import ValidSuggestions, choices_of
from mondrian_bo.optimizer.shared.trials import rounded
from mondrian_bo.optimizer.shared.validation import Direction
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.search_space.lenient_encoding import encode_leniently
from mondrian_bo.shared.array_types import BoolArray, FloatArray
from mondrian_bo.shared.garbage_collection import without_collections

if TYPE_CHECKING:
    from mondrian_bo.integrations.optuna.suggestions.earlier_studies import EarlierStudies
    from mondrian_bo.integrations.optuna.suggestions.study_fidelity import StudyFidelity
    from mondrian_bo.optimizer.row_optimizer import RowOptimizer


class ToldStudy:
    """The reader of a study, and the optimizer that has been told what it read.

    Parameters
    ----------
    entropy : list of int
        Seed of the draws.
    fidelity_name : str or None
        Name of the fidelity, also if the optimizer does not know it.
    earlier, fidelity : EarlierStudies and StudyFidelity, or None, default=None
        Earlier studies, and the fidelity, if the sampler has them.

    Attributes
    ----------
    entropy : list of int
        As given.
    reader : StudyReader
        The reader.
    n_told : int
        Number of finished trials that the optimizer has been told.
    latest_read : tuple of int or None, and list of FrozenTrial
        The trial for which the study was last read, by number, and the trials that were running
        then. None once that trial has its suggestion.
    """

    def __init__(
        self,
        entropy: list[int],
        fidelity_name: str | None,
        earlier: EarlierStudies | None = None,
        fidelity: StudyFidelity | None = None,
    ) -> None:
        self.entropy = entropy
        self._earlier = earlier
        self._fidelity = fidelity
        self.reader = StudyReader(fidelity_name)
        self._optimizer: RowOptimizer | None = None
        self._recipe: SpaceRecipe | None = None
        self._finished = self.reader.finished
        self._n_rebuilt, self.n_told = 0, 0
        self.latest_read: tuple[int | None, list[FrozenTrial]] = None, []
        self._is_changing = False
        self._running: dict[int, tuple[object, FloatArray]] = {}

    def running_beside(self, study: optuna.Study, trial: FrozenTrial) -> list[FrozenTrial]:
        """Return the other running trials.

        The study is read again unless it was just read for `trial`, as
        `infer_relative_search_space` does.
        """
        (number, running), self.latest_read = self.latest_read, (None, [])
        if number != trial.number:
            running = self.reader.read(study)
        return [one for one in running if one.number != trial.number]

    def optimizer_for(
        self,
        study: optuna.Study,
        search_space: Mapping[str, BaseDistribution],
        settings: Mapping[str, Any],
        is_valid: Callable[[dict[str, Any]], bool] | None = None,
        constants: dict[str, Any] | None = None,
    ) -> RowOptimizer | None:
        """Return an optimizer over the space that knows all finished trials.

        It is rebuilt only when the space or its learnt conditions have changed, or when another
        study has taken the place of this one. Of a wide space, parameters that are new wait until
        the trials have grown by a tenth: they are drawn uniformly until then.

        Parameters
        ----------
        study : optuna.Study
            The study, as it was read last.
        search_space : mapping of str to BaseDistribution
            The parameters.
        settings : mapping
            Settings of the optimizer.
        is_valid : callable or None, default=None
            The user's function.
        constants : dict or None, default=None
            Values for `is_valid` of parameters that the space lacks, by :func:`constants_beside`.
        """
        learner = self.reader.conditions
        recipe = SpaceRecipe(dict(search_space), learner.conditions, learner.unexplained, constants)
        # An optimizer that was told half of some trials when it was interrupted is built anew.
        if self._is_changing or self._needs_another(recipe):
            self._is_changing = True
            self._recipe = recipe
            self._finished = self.reader.finished
            self._n_rebuilt = len(self._finished)
            self.n_told = 0
            self._optimizer, self._running = None, {}
            self._optimizer = self._build(recipe, study.directions, settings, is_valid)
        if self._optimizer is not None and self.n_told < len(self.reader.finished):
            self._is_changing = True
            self._tell(self._optimizer)
        self._is_changing = False
        return self._optimizer

    def _needs_another(self, recipe: SpaceRecipe) -> bool:
        """Return whether the optimizer does not fit a recipe, or knows trials of another study."""
        if self._recipe is None or self._finished is not self.reader.finished:
            return True
        n_then, n_now = self._n_rebuilt, len(self._finished)
        return recipe != self._recipe and not recipe.may_wait(self._recipe, n_then, n_now)

    def _build(
        self,
        recipe: SpaceRecipe,
        directions: Sequence[StudyDirection],
        settings: Mapping[str, Any],
        is_valid: Callable[[dict[str, Any]], bool] | None,
    ) -> RowOptimizer | None:
        """Return an optimizer that knows no trial; None if no parameter can be in a model."""
        space = to_space(recipe.distributions, recipe.conditions)
        if space is None:
            return None
        # Absences have no explanation where the space cannot state a condition.
        lacks_conditions = any(
            space[name].condition is None for name in recipe.conditions if name in space
        )
        words: list[Direction] = [
            "maximize" if direction == StudyDirection.MAXIMIZE else "minimize"
            for direction in directions
        ]
        # Loaded here: a sampler is constructed without numba and scipy.
        with without_collections("mondrian_bo.optimizer.row_optimizer"):
            from mondrian_bo.optimizer.row_optimizer import RowOptimizer

        options: dict[str, Any] = {}
        if is_valid is not None:
            choices = choices_of(recipe.distributions)
            constants = recipe.constants or {}
            options["is_valid"] = ValidSuggestions(is_valid, choices, constants, self.reader)
        if self._earlier is not None:
            options["warm_start"] = self._earlier.encode(recipe.distributions, space)
        if self._fidelity is not None:
            options["fidelity"] = self._fidelity.within(space)
        return RowOptimizer(
            space,
            directions=words,
            seed=self.entropy,
            allow_missing=recipe.unexplained or lacks_conditions,
            **settings,
            **options,
        )

    def values_of(self, trial: FrozenTrial, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a trial as far as they are known, proposed and fixed ones too."""
        distributions = self.reader.distributions
        proposed = {
            name: distributions[name].to_external_repr(value)
            for name, value in self.reader.running_values(trial).items()
            if name in distributions
        }
        return {**(self.reader.constants or {}), **proposed, **fixed, **trial.params}

    def rows_of(self, running: Sequence[FrozenTrial], optimizer: RowOptimizer) -> FloatArray:
        """Encode running trials, shape (k, d), without those of which too little is known.

        A trial is encoded again only when it has got another proposal or asked for more.
        """
        known, self._running = self._running, {}
        for trial in running:
            key = len(trial.params), published_parts(trial)
            latest = known.get(trial.number)
            if latest is None or latest[0] != key:
                latest = (
                    key,
                    encode_leniently(optimizer.space, [self.reader.running_values(trial)])[0],
                )
            self._running[trial.number] = latest
        rows = np.array([row for _, row in self._running.values()])
        rows = rows.reshape(len(running), optimizer.space.n_dimensions)
        return rows[optimizer.accepts(rows)]

    def taken_beside(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> Callable[[Mapping[str, float]], bool]:
        """Return a function that says whether another trial with some values has finished or runs.

        Parameters
        ----------
        study, trial
            The trial that the others are beside, and its study.

        Returns
        -------
        callable
            A function of the values in Optuna's internal representation; O(1) in the number of
            finished trials.
        """
        optimizer = self._optimizer
        if optimizer is None:
            return lambda values: False
        space = optimizer.space
        running = self.rows_of(self.running_beside(study, trial), optimizer)
        untold = [{**one.unasked, **one.values} for one in self.reader.finished[self.n_told :]]
        others = rounded(np.concatenate([running, encode_leniently(space, untold)]))
        keys = {row.tobytes() for row in others}
        empty = np.full((1, space.n_dimensions), np.nan)
        return lambda values: optimizer.is_taken(fill_unasked(space, empty, [values])[0], keys)

    def _tell(self, optimizer: RowOptimizer) -> None:
        """Tell an optimizer the finished trials that it has not been told."""
        finished = self.reader.finished[self.n_told :]
        self.n_told += len(finished)
        # A trial whose proposed number was replaced by the nearest one in range is learnt at the
        # proposal. Otherwise the search would repeat the proposal, with the same outcome.
        new = [
            one._replace(values={**one.values, **one.replaced}) if one.replaced else one
            for one in finished
        ]
        outcomes = np.array([trial.outcomes for trial in new])
        asked = encode_leniently(optimizer.space, [trial.values for trial in new])
        unasked = [trial.unasked for trial in new]
        rows = fill_unasked(optimizer.space, asked, unasked) if any(unasked) else asked
        known = optimizer.accepts(rows)
        names = self.reader.constraints
        constraints = np.array(
            [[trial.constraints.get(name, math.nan) for name in names] for trial in new]
        )
        told = list(compress(new, known))
        errors = self.reader.errors_of(told)
        costs = None if self._fidelity is None else self._fidelity.costs_of(told, self.reader)
        # `weighs=False`: these errors are those of predicted values of pruned trials. Searches that
        # weigh trials by them gain nothing, and some lose.
        told_rows = rows[known], outcomes[known], constraints[known], errors
        optimizer.tell_rows(*told_rows, costs=costs, weighs=False)
        for one in finished:
            if one.replaced or one.singles:
                _exclude_own(optimizer, one)
        if rows is not asked:
            _exclude_asked(optimizer, asked, rows, ~np.isnan(outcomes).any(axis=1))


def _exclude_own(optimizer: RowOptimizer, trial: FinishedTrial) -> None:
    """Rule out every proposal that would again become this trial.

    Where the trial's range had one value (`singles`), every proposal becomes that value. A number
    that was replaced by the nearest one counts only in a finite range, and only if the trial then
    repeated another one: the range had no new value left.
    """
    row = encode_leniently(optimizer.space, [trial.values])
    if not optimizer.accepts(row)[0]:
        return
    anything = set(trial.singles)
    if trial.replaced and optimizer.is_taken(row[0]):
        space = optimizer.space
        anything.update(name for name in trial.replaced if name in space and space[name].n_values)
    wider = np.where([name in anything for name in optimizer.space.names], np.nan, row)
    # Without any value, the row would exclude the whole space.
    optimizer.exclude_rows(row if np.isnan(wider).all() else wider)


def _exclude_asked(
    optimizer: RowOptimizer, asked: FloatArray, filled: FloatArray, has_outcomes: BoolArray
) -> None:
    """Rule out the values that m trials asked for, whatever else is proposed beside them.

    Only rows count in which proposed values filled a gap. A trial that failed is left out, because
    it may have failed before it asked for more; so is a trial with an unknown value.
    """
    is_filled = (np.isnan(asked) & ~np.isnan(filled)).any(axis=1)
    if is_filled.any():
        is_same = has_outcomes & optimizer.space.is_complete(filled)
        optimizer.exclude_rows(asked[is_filled & is_same & optimizer.accepts(asked)])


def fill_unasked(
    space: SearchSpace, rows: FloatArray, unasked: Sequence[Mapping[str, float]]
) -> FloatArray:
    """Fill the gaps of encoded trials with values that were proposed and not asked for.

    The outcome of a trial is then known where its proposal was. Otherwise an objective that leaves
    parameters out for reasons that no condition explains would be asked for the same again and
    again.

    Parameters
    ----------
    space : SearchSpace
        The present space.
    rows : float64 array of shape (m, d)
        The trials, as `encode_leniently` returns them.
    unasked : sequence of m mappings of str to float
        Values in Optuna's internal representation.

    Returns
    -------
    float64 array of shape (m, d)
        The filled rows. Parameters that conditions make inactive stay NaN.
    """
    if not any(name in space for one in unasked for name in one):
        return rows
    filled = np.where(np.isnan(rows), encode_leniently(space, unasked), rows)
    inactive = np.isnan(space.snap(np.nan_to_num(filled)))
    filled[inactive & np.isnan(rows)] = np.nan
    return filled

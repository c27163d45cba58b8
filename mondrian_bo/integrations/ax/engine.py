"""The optimizer behind both routes: Ax's observations as outcomes of trials."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
from ax.exceptions.core import DataRequiredError, UnsupportedError

from mondrian_bo.integrations.ax.goal import Expression, Goal
from mondrian_bo.integrations.ax.space import TranslatedSpace
from mondrian_bo.optimizer.models.tracked_metrics import TrackedMetrics
from mondrian_bo.optimizer.row_optimizer import RowOptimizer
from mondrian_bo.optimizer.search.portfolio import SearchOptions
from mondrian_bo.optimizer.shared.trials import N_BEST
from mondrian_bo.optimizer.shared.validation import MOST_OBJECTIVES
from mondrian_bo.search_space import Float, SearchSpace
from mondrian_bo.shared.argument_checks import is_integer
from mondrian_bo.shared.array_types import FloatArray

_LIKELY_FEASIBLE = 0.5
"""Predicted probability from which a point counts as feasible: more likely than not."""

_SETTINGS = tuple(SearchOptions.__annotations__)
"""Arguments of the optimizer that an experiment of Ax leaves open."""


def check_seed(seed: int | None) -> int | None:
    """Return a seed as an int, which Ax's Sobol generator and its storage take; None stays None.

    Raises
    ------
    TypeError, ValueError
        If it is not an integer from 0 to 2^63 - 1 or None.
    """
    if seed is None:
        return None
    if not is_integer(seed) or not 0 <= seed < 2**63:
        error = ValueError if is_integer(seed) else TypeError
        raise error(f"`seed` must be an integer from 0 to 2^63 - 1 or None, got {seed!r}.")
    return int(seed)


class Observation(NamedTuple):
    """The outcomes of an arm in a trial.

    Attributes
    ----------
    outcomes : dict of str to (float, float)
        Mean and standard error by metric signature; an unknown error is NaN.
    stopped : bool
        Whether the trial was stopped early. Its objective then counts as no better than the median.
    """

    outcomes: dict[str, tuple[float, float]]
    stopped: bool = False


class _Told(NamedTuple):
    """An observation of an arm, the encoded point of the arm, and whether that is in the space."""

    seen: Observation
    arm: dict[str, Any]
    row: FloatArray
    is_inside: bool


class Engine:
    """An optimizer of the goal's outcomes, which is told every observation once.

    Parameters
    ----------
    seed : int or None
        Seed of all randomness; None takes entropy from the system.
    settings : mapping
        Further arguments of :class:`mondrian_bo.MondrianOptimizer`: ``surrogate``, ``acquisition``,
        ``n_startup_trials``, ``n_estimators``, ``n_candidates``.

    Raises
    ------
    ValueError, TypeError
        If the seed or the settings are not what the optimizer takes.
    """

    def __init__(self, seed: int | None, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)
        self.seed = check_seed(seed)
        # Wrong settings raise here, before the first trial.
        for name in self._settings:
            if name not in _SETTINGS:
                raise TypeError(
                    f"MondrianOptimizer has no setting {name!r} under Ax; it has "
                    f"{', '.join(_SETTINGS)}. The experiment says the rest."
                )
        RowOptimizer(SearchSpace({"x": Float(0.0, 1.0)}), seed=self.seed, **self._settings)
        if seed is None:
            self.seed = int(np.random.SeedSequence().generate_state(1)[0])
        self.space: TranslatedSpace | None = None
        self._goal: Goal | None = None
        self._told: dict[Hashable, _Told] = {}
        self._avoided: dict[Hashable, FloatArray] = {}
        self._forget_models()

    def _forget_models(self) -> None:
        """Discard all models; they learn the stored observations again."""
        self._optimizer: RowOptimizer | None = None
        self._n_known, self._n_avoided, self._n_tracked = 0, 0, 0
        self._tracked: list[str] = []
        self._is_telling = False

    @property
    def n_observations(self) -> int:
        """Number of arms whose outcomes are known."""
        return len(self._told)

    def update(
        self,
        space: TranslatedSpace,
        goal: Goal | None,
        observations: Mapping[Hashable, Observation],
        parameters: Mapping[Hashable, Mapping[str, Any]],
        failed: Mapping[Hashable, Mapping[str, Any]],
    ) -> None:
        """Store all observations; the cost grows with the new ones only.

        Parameters
        ----------
        space : TranslatedSpace
            The present search space.
        goal : Goal or None
            Objectives and constraints; None if they are not known yet.
        observations : mapping
            All observations, by trial and arm.
        parameters : mapping
            Parameterizations of the arms by the same keys; only those of new observations are read.
        failed : mapping
            Parameterizations of failed arms, which are not suggested again.
        """
        changed = self.space is None or not space.has_rows_of(self.space)
        # Models cannot forget: if outcomes were revised or removed, they start again.
        if changed or any(observations.get(key) != told.seen for key, told in self._told.items()):
            self._told, self._avoided = {}, {}
            self._forget_models()
        if space != self.space:
            self.space = space
        self.pursue(goal)
        for key, observation in observations.items():
            if key not in self._told:
                arm = dict(parameters[key])
                row = space.encode(arm)
                self._told[key] = _Told(observation, arm, row, space.contains(row))
        for key, failure in failed.items():
            if key not in self._avoided:
                self._avoided[key] = space.encode(failure)

    def pursue(self, goal: Goal | None) -> None:
        """Set the goal. A different goal discards all models."""
        if goal != self._goal:
            self._goal = goal
            self._forget_models()

    def suggest(
        self, pending: list[FloatArray], index: int, within: SearchSpace
    ) -> dict[str, object]:
        """Suggest the next arm.

        Parameters
        ----------
        pending : list of float64 arrays of shape (d,)
            Rows of running arms.
        index : int
            Number of the suggestion; with the seed it determines the random draws.
        within : SearchSpace
            Part of the space to stay in.

        Returns
        -------
        dict
            Values of the optimizer's space.

        Raises
        ------
        ax.exceptions.core.UnsupportedError
            If there is no optimization config, or it has too many objectives.
        """
        if self._goal is None:
            raise UnsupportedError("An optimization config is needed to suggest candidates.")
        optimizer = self._informed()
        pending_rows = np.array(pending).reshape(len(pending), optimizer.space.n_dimensions)
        pending_rows = pending_rows[optimizer.accepts(pending_rows)]
        return optimizer.suggest(pending_rows, index, within)

    def predict(self, metric: str, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict mean and standard deviation of a metric at encoded points, both of shape (m,).

        Raises
        ------
        ax.exceptions.core.DataRequiredError
            If the metric has no data.
        """
        if metric not in self.metrics():
            raise DataRequiredError(f"There is no data of metric {metric!r} to predict from.")
        optimizer, goal = self._informed(), self._goal
        expressions = [] if goal is None else [expression for expression, _ in goal.objectives]
        if ((metric, 1.0),) in expressions and optimizer.n_trials:
            column = expressions.index(((metric, 1.0),))
            mean, std = optimizer.predict_rows(rows)
        else:
            mean, std = self._track(optimizer).predict_rows(rows)
            column = self._tracked.index(metric)
        return mean[:, column], std[:, column]

    def metrics(self) -> list[str]:
        """Return the signatures of all metrics that were observed, in alphabetical order."""
        return sorted({metric for told in self._told.values() for metric in told.seen.outcomes})

    def best_arm(self) -> dict[str, Any] | None:
        """Return the observed arm with the best predicted objective; None if there is none.

        It is chosen among the ten arms with the best observed objective that satisfy the
        constraints. Of these, arms whose predictions are likely to satisfy them come first.
        """
        goal = self._goal
        if goal is None or len(goal.objectives) != 1:
            return None
        ((expression, sign),) = goal.objectives
        found = []
        for told in self._told.values():
            value, _ = _value(expression, told.seen)
            if told.is_inside and math.isfinite(value) and self._is_feasible(told.seen):
                found.append((sign * value, told))
        if not found:
            return None
        found.sort(key=lambda pair: -pair[0])
        best = [told for _, told in found[:N_BEST]]
        rows = np.array([told.row for told in best])
        optimizer = self._informed()
        mean, _ = optimizer.predict_rows(rows)
        likely = optimizer.log_feasibility(rows) >= math.log(_LIKELY_FEASIBLE)
        score = np.where(likely | ~likely.any(), sign * mean[:, 0], -math.inf)
        # The arm itself: Ax does not find a decoded row, which may differ in the last digit.
        return best[int(score.argmax())].arm.copy()

    def _informed(self) -> RowOptimizer:
        """Return the optimizer after telling it all new observations."""
        assert self.space is not None
        goal = self._goal
        if self._is_telling:
            # An exception came between two trials.
            self._forget_models()
        if self._optimizer is None:
            objectives = [] if goal is None else goal.objectives
            if len(objectives) > MOST_OBJECTIVES:
                raise UnsupportedError(
                    f"At most {MOST_OBJECTIVES} objectives can be optimised; got {len(objectives)}."
                )
            signs = [sign for _, sign in objectives] or [-1.0]
            self._optimizer = RowOptimizer(
                self.space.space,
                directions=["maximize" if sign > 0.0 else "minimize" for sign in signs],
                seed=[self.seed or 0],
                reference_point=(goal.thresholds or None) if goal is not None else None,
                **self._settings,
            )
        if goal is not None:
            self._is_telling = True
            self._tell(self._optimizer, goal)
            self._is_telling = False
        return self._optimizer

    def _tell(self, optimizer: RowOptimizer, goal: Goal) -> None:
        """Tell the optimizer all new observations and failed arms."""
        new = self._told_since(self._n_known, optimizer)
        self._n_known = len(self._told)
        if new:
            n_objectives = len(goal.objectives)
            outcomes = np.array([_outcomes(goal, told.seen) for told in new])
            values, errors = outcomes[:, :, 0], outcomes[:, :, 1]
            for k, (expression, sign) in enumerate(goal.objectives):
                values[:, k] = self._no_better_than_median(expression, new, values[:, k], sign)
            rows = np.array([told.row for told in new])
            values, constraints = np.hsplit(values, [n_objectives])
            # Where an outcome is missing, this is no failure.
            optimizer.tell_rows(rows, values, constraints, errors, nan_is_failure=False)
        if self._n_avoided < len(self._avoided):
            rows = np.array(list(self._avoided.values())[self._n_avoided :])
            self._n_avoided = len(self._avoided)
            rows = rows[optimizer.accepts(rows)]
            optimizer.tell_rows(rows, np.full((len(rows), len(goal.objectives)), np.nan))

    def _told_since(self, n_known: int, optimizer: RowOptimizer) -> list[_Told]:
        """Return the observations after the first `n_known` ones that the optimizer accepts."""
        new = list(self._told.values())[n_known:] if n_known < len(self._told) else []
        return [told for told in new if optimizer.accepts(told.row[None]).all()]

    def _track(self, optimizer: RowOptimizer) -> TrackedMetrics:
        """Return the models of all metrics after telling them all new observations."""
        new = self._told_since(self._n_tracked, optimizer)
        self._n_tracked = len(self._told)
        self._tracked.extend(metric for metric in self.metrics() if metric not in self._tracked)
        if new:
            values, errors = np.full((2, len(new), len(self._tracked)), np.nan)
            for i, told in enumerate(new):
                for metric, (mean, error) in told.seen.outcomes.items():
                    column = self._tracked.index(metric)
                    values[i, column], errors[i, column] = mean, error
            self._is_telling = True
            optimizer.metrics.tell_rows(np.array([told.row for told in new]), values, errors)
            self._is_telling = False
        return optimizer.metrics

    def _no_better_than_median(
        self,
        expression: Expression,
        new: list[_Told],
        values: FloatArray,
        sign: float,
    ) -> FloatArray:
        """Return the values, those of stopped trials no better than the median of complete ones."""
        stopped = np.array([told.seen.stopped for told in new])
        if not stopped.any():
            return values
        complete = [
            _value(expression, told.seen)[0]
            for told in self._told.values()
            if not told.seen.stopped
        ]
        complete = [value for value in complete if not math.isnan(value)]
        if not complete:
            return values
        median = float(np.median(complete))
        return np.where(stopped, sign * np.minimum(sign * values, sign * median), values)

    def _is_feasible(self, seen: Observation) -> bool:
        """Return whether outcomes satisfy all constraints of the goal; unknown ones do not."""
        if self._goal is None:
            return True
        constraints = _outcomes(self._goal, seen)[len(self._goal.objectives) :]
        return all(value <= 0.0 for value, _ in constraints)


def _value(expression: Expression, seen: Observation) -> tuple[float, float]:
    """Return value and standard error of an expression; NaN if a metric is missing."""
    value, error = 0.0, 0.0
    for metric, weight in expression:
        mean, own_error = seen.outcomes.get(metric, (math.nan, math.nan))
        value += weight * mean
        error = math.hypot(error, weight * own_error)
    return value, error


def _outcomes(goal: Goal, seen: Observation) -> list[tuple[float, float]]:
    """Return values and standard errors of all objectives and constraints of a goal."""
    outcomes = [_value(expression, seen) for expression, _ in goal.objectives]
    for bound in goal.bounds:
        value, error = _value(bound.expression, seen)
        outcomes.append((bound.sign * (value - bound.bound), error))
    return outcomes

"""The optimizer behind both routes, with a model for each outcome."""

from __future__ import annotations

import math
import zlib
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from ax.exceptions.core import DataRequiredError, UnsupportedError

from mondrian_bo.acquisitions.feasibility import log_probability_below
from mondrian_bo.array_types import FloatArray
from mondrian_bo.integrations.ax.goal import Bound, Expression, Goal
from mondrian_bo.integrations.ax.space import TranslatedSpace
from mondrian_bo.optimizer.known_noise import KnownNoise
from mondrian_bo.optimizer.optimizer import MondrianOptimizer
from mondrian_bo.search_space import Float, SearchSpace

_N_BEST = 10
"""Observed points among which `Engine.best_row` chooses, as many as the optimizer considers for its
value to beat."""

_LIKELY_FEASIBLE = 0.5
"""Predicted probability from which a point counts as feasible: more likely than not."""


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
    """An observation, its encoded point, and whether that lies in the space."""

    seen: Observation
    row: FloatArray
    is_inside: bool


class Engine:
    """A model for each outcome, which is told every observation once.

    Models are created when they are first needed: one for the objective, one for each constraint,
    and one for each predicted metric. A metric with several of these roles has one model.

    Parameters
    ----------
    seed : int or None
        Seed of all randomness; None takes entropy from the system.
    settings : mapping
        Further arguments of :class:`mondrian_bo.MondrianOptimizer`.

    Raises
    ------
    ValueError, TypeError
        If the seed or the settings are not what the optimizer takes.
    """

    def __init__(self, seed: int | None, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)
        self.seed = seed
        # Wrong settings raise here, before the first trial.
        MondrianOptimizer(SearchSpace({"x": Float(0.0, 1.0)}), seed=seed, **self._settings)
        if seed is None:
            self.seed = int(np.random.SeedSequence().generate_state(1)[0])
        self.space: TranslatedSpace | None = None
        self._goal: Goal | None = None
        self._told: dict[Hashable, _Told] = {}
        self._avoided: dict[Hashable, FloatArray] = {}
        self._forget_models()

    def _forget_models(self) -> None:
        self._n_avoided = 0
        self._models: dict[Expression, KnownNoise] = {}
        self._n_known: dict[Expression, int] = {}

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
            Objective and constraints; None if they are not known yet.
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
                row = space.encode(parameters[key])
                self._told[key] = _Told(observation, row, space.contains(row))
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
            If there are several objectives.
        """
        goal = self._checked_goal()
        optimizer = self._model(goal.objectives[0][0]).optimizer
        pending_rows = np.array(pending).reshape(len(pending), optimizer.space.n_dimensions)
        pending_rows = pending_rows[optimizer.accepts(pending_rows)]
        models = self._constraint_models(goal)
        # A constraint without any outcome yet rules nothing out.
        models = [(bound, model) for bound, model in models if model.optimizer.n_trials]
        log_probability = partial(_log_feasibility, models) if models else None
        return optimizer.suggest(pending_rows, index, within, log_probability)

    def predict(self, metric: str, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict mean and standard deviation of a metric at encoded points, both of shape (m,).

        Raises
        ------
        ax.exceptions.core.DataRequiredError
            If the metric has no data.
        """
        model = self._model(((metric, 1.0),))
        if model.optimizer.n_trials == 0:
            raise DataRequiredError(f"There is no data of metric {metric!r} to predict from.")
        return model.predict_rows(rows)

    def metrics(self) -> list[str]:
        """Return the signatures of all metrics that were observed, in alphabetical order."""
        return sorted({metric for told in self._told.values() for metric in told.seen.outcomes})

    def best_row(self) -> FloatArray | None:
        """Return the observed point with the best predicted objective; None if there is none.

        It is chosen among the ten points with the best observed objective that satisfy the
        constraints. Of these, points whose predictions are likely to satisfy them come first.
        """
        goal = self._goal
        if goal is None or len(goal.objectives) != 1:
            return None
        ((expression, sign),) = goal.objectives
        found = []
        for seen, row, is_inside in self._told.values():
            value, _ = _value(expression, seen)
            if is_inside and math.isfinite(value) and self._is_feasible(seen):
                found.append((sign * value, row))
        if not found:
            return None
        found.sort(key=lambda pair: -pair[0])
        rows = np.array([row for _, row in found[:_N_BEST]])
        mean, _ = self._model(expression).predict_rows(rows)
        log_probability = _log_feasibility(self._constraint_models(goal), rows)
        likely = log_probability >= math.log(_LIKELY_FEASIBLE)
        score = np.where(likely | ~likely.any(), sign * mean, -math.inf)
        return np.asarray(rows[int(score.argmax())])

    def _constraint_models(self, goal: Goal) -> list[tuple[Bound, KnownNoise]]:
        return [(bound, self._model(bound.expression)) for bound in goal.bounds]

    def _checked_goal(self) -> Goal:
        if self._goal is None:
            raise UnsupportedError("An optimization config is needed to suggest candidates.")
        if len(self._goal.objectives) != 1:
            raise UnsupportedError(
                "Only one objective can be optimised, possibly a scalarised one; got "
                f"{len(self._goal.objectives)}. Predictions of all metrics are available."
            )
        return self._goal

    def _model(self, expression: Expression) -> KnownNoise:
        """Return the model of an outcome after telling it all new observations."""
        assert self.space is not None
        objective = self._goal.objectives[0] if self._goal is not None else None
        is_objective = objective is not None and objective[0] == expression
        if expression not in self._models:
            # The objective's model has the seed itself: it suggests what a plain optimizer would.
            words = [] if is_objective else [zlib.crc32(repr(expression).encode())]
            maximize = is_objective and objective is not None and objective[1] > 0.0
            self._models[expression] = KnownNoise(
                MondrianOptimizer(
                    self.space.space,
                    direction="maximize" if maximize else "minimize",
                    seed=[self.seed or 0, *words],
                    **self._settings,
                )
            )
            self._n_known[expression] = 0
        model = self._models[expression]
        self._tell(expression, model, objective[1] if is_objective and objective else 0.0)
        return model

    def _tell(self, expression: Expression, model: KnownNoise, sign: float) -> None:
        n_known = self._n_known[expression]
        new = list(self._told.values())[n_known:] if n_known < len(self._told) else []
        self._n_known[expression] = len(self._told)
        usable = []
        for told in new:
            if not model.optimizer.accepts(told.row[None]).all():
                continue
            if math.isnan(_value(expression, told.seen)[0]):
                # The outcome is missing: this is no failure, but the arm is not suggested again.
                model.optimizer.exclude_rows(told.row[None])
            else:
                usable.append(told)
        if usable:
            values, errors = np.array([_value(expression, told.seen) for told in usable]).T
            if sign:
                values = self._no_better_than_median(expression, usable, values, sign)
            model.tell_rows(
                np.array([told.row for told in usable]),
                values,
                errors,
                np.array([self._is_feasible(told.seen) for told in usable]),
            )
        if sign and self._n_avoided < len(self._avoided):
            failed = list(self._avoided.values())[self._n_avoided :]
            self._n_avoided = len(self._avoided)
            rows = np.array(failed)
            rows = rows[model.optimizer.accepts(rows)]
            model.optimizer.tell_rows(rows, np.full(len(rows), np.nan))

    def _no_better_than_median(
        self,
        expression: Expression,
        usable: list[_Told],
        values: FloatArray,
        sign: float,
    ) -> FloatArray:
        """Return the values, those of stopped trials no better than the median of complete ones."""
        stopped = np.array([told.seen.stopped for told in usable])
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
        bounds = () if self._goal is None else self._goal.bounds
        return all(_satisfies(bound, seen) for bound in bounds)


def _log_feasibility(models: Sequence[tuple[Bound, KnownNoise]], rows: FloatArray) -> FloatArray:
    """Return the log-probability that all bounds hold at encoded points, shape (m,)."""
    total = np.zeros(len(rows))
    for bound, model in models:
        mean, std = model.predict_rows(rows)
        total += log_probability_below(bound.sign * mean, std, bound.sign * bound.bound)
    return total


def _value(expression: Expression, seen: Observation) -> tuple[float, float]:
    """Return value and standard error of an expression; NaN if a metric is missing."""
    value, error = 0.0, 0.0
    for metric, weight in expression:
        mean, own_error = seen.outcomes.get(metric, (math.nan, math.nan))
        value += weight * mean
        error = math.hypot(error, weight * own_error)
    return value, error


def _satisfies(bound: Bound, seen: Observation) -> bool:
    value, _ = _value(bound.expression, seen)
    return bound.sign * value <= bound.sign * bound.bound

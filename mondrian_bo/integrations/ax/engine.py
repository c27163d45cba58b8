"""The optimizer behind both routes: observations of several metrics, a goal, suggestions."""

from __future__ import annotations

import math
import zlib
from collections.abc import Hashable, Mapping
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
_LIKELY_FEASIBLE = 0.5


class Observation(NamedTuple):
    """What was seen of an arm in a trial.

    Attributes
    ----------
    outcomes : dict of str to (float, float)
        By metric signature: mean and standard error, which is NaN where it is not known.
    stopped : bool
        Whether the trial was stopped early: its objective counts as no better than the median.
    """

    outcomes: dict[str, tuple[float, float]]
    stopped: bool = False


class _Told(NamedTuple):
    """An observation, its encoded point, and whether that lies in the space."""

    seen: Observation
    row: FloatArray
    is_inside: bool


class Engine:
    """One model per outcome that is asked for, told what is new and nothing twice.

    Models are made when they are first needed: one of the objective, one for each constraint, and
    one of each metric that is predicted; a metric that plays several parts has one model.

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
        # Says at once what is wrong with the settings.
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
        """Take note of all that is known; what was known before costs next to nothing.

        Parameters
        ----------
        space : TranslatedSpace
            The space of today.
        goal : Goal or None
            What is wanted; None if that is not known yet.
        observations : mapping
            All observations, by trial and arm.
        parameters : mapping
            The arms' parameterizations, by the same keys; looked up for new observations only.
        failed : mapping
            Parameterizations of arms that failed: they are not suggested again.
        """
        changed = self.space is None or not space.has_rows_of(self.space)
        # Outcomes may be revised or removed: trees grow, but do not shrink.
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
        """Set what is wanted. Another goal needs other models."""
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
            Arms that are running or to be run.
        index : int
            Names the random draw.
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
        rows = [row for row in pending if optimizer.accepts(row)]
        pending_rows = np.array(rows).reshape(len(rows), optimizer.space.n_dimensions)
        models = [(bound, self._model(bound.expression)) for bound in goal.bounds]
        # A constraint on something nobody has measured yet rules nothing out.
        models = [(bound, model) for bound, model in models if model.optimizer.n_trials]

        def log_probability(rows: FloatArray) -> FloatArray:
            total = np.zeros(len(rows))
            for bound, model in models:
                mean, std = model.predict_rows(rows)
                total += log_probability_below(bound.sign * mean, std, bound.sign * bound.bound)
            return total

        return optimizer.suggest(pending_rows, index, within, log_probability if models else None)

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

        It is one of the ten best by their observations among those that satisfy the constraints,
        and its predictions are likely to satisfy them too, if that is true of any.
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
        chance = np.zeros(len(rows))
        for bound in goal.bounds:
            moments = self._model(bound.expression).predict_rows(rows)
            chance += log_probability_below(
                bound.sign * moments[0], moments[1], bound.sign * bound.bound
            )
        likely = chance >= math.log(_LIKELY_FEASIBLE)
        score = np.where(likely | ~likely.any(), sign * mean, -math.inf)
        return np.asarray(rows[int(score.argmax())])

    def _checked_goal(self) -> Goal:
        if self._goal is None:
            raise UnsupportedError("An optimization config is needed to suggest candidates.")
        if len(self._goal.objectives) != 1:
            raise UnsupportedError(
                "Mondrian acquisitions optimise one objective, possibly scalarised; got "
                f"{len(self._goal.objectives)}. Predictions of all metrics are available."
            )
        return self._goal

    def _model(self, expression: Expression) -> KnownNoise:
        """Return the model of an outcome, told all that is known by now."""
        assert self.space is not None
        objective = self._goal.objectives[0] if self._goal is not None else None
        is_objective = objective is not None and objective[0] == expression
        if expression not in self._models:
            # The objective has the seed itself, and suggests what a bare optimizer would.
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
            if not model.optimizer.accepts(told.row):
                continue
            if math.isnan(_value(expression, told.seen)[0]):
                # Not measured, which is no fault of the arm, but it is not to be tried again.
                model.optimizer.exclude_row(told.row)
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
            rows = [row for row in failed if model.optimizer.accepts(row)]
            if rows:
                model.optimizer.tell_rows(np.array(rows), np.full(len(rows), np.nan))

    def _no_better_than_median(
        self,
        expression: Expression,
        usable: list[_Told],
        values: FloatArray,
        sign: float,
    ) -> FloatArray:
        """Count trials that were stopped early as no better than the median of complete ones."""
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


def _value(expression: Expression, seen: Observation) -> tuple[float, float]:
    """Return value and standard error of an expression; NaN where metrics are missing."""
    value, error = 0.0, 0.0
    for metric, weight in expression:
        mean, own_error = seen.outcomes.get(metric, (math.nan, math.nan))
        value += weight * mean
        error = math.hypot(error, weight * own_error)
    return value, error


def _satisfies(bound: Bound, seen: Observation) -> bool:
    value, _ = _value(bound.expression, seen)
    return bound.sign * value <= bound.sign * bound.bound

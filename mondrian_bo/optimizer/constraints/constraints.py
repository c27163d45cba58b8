"""The constraints of a search: a model of each, and the probability that all of them hold."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import TypeAlias

import numpy as np
from numba import njit

from mondrian_bo.acquisitions.feasibility import (
    log_probabilities_above,
    log_probability_gradients,
)
from mondrian_bo.optimizer.constraints.constraint_transform import ConstraintTransform
from mondrian_bo.optimizer.constraints.half_spaces import HalfSpaces, find_half_space
from mondrian_bo.optimizer.models.outcome_model import REFIT_GROWTH, OutcomeModel, Transform
from mondrian_bo.optimizer.models.outcome_models import OutcomeModels
from mondrian_bo.optimizer.shared.trials import TrialsState
from mondrian_bo.search_space import RestrictedSpace, SearchSpace
from mondrian_bo.shared.array_types import BoolArray, FloatArray

_N_STARTS = 10
"""Number of least violating trials that candidates start from while no trial is feasible."""

_FEASIBLE_SHARE = 0.85
"""Share of feasible trials since the first one below which feasibility counts more: our choice.
Trials without a known constraint do not count."""

_EXPONENT = 2.0
"""Power of the probability of feasibility while it counts more: our choice."""

_PRIOR_TRIALS = 5.0
"""Number of trials of correlation 0 that are added to those observed: our choice."""

ConstraintsState: TypeAlias = tuple[int, int, tuple[TrialsState, ...]]
"""A former state: numbers of trials and of those behind the correlations, and the margins."""


class Constraints:
    """Constraints on outcomes, which a trial satisfies where their values are at most 0.

    Each constraint has a model of its own, of those trials whose value is known. Constraints may be
    added at any time. The probability that all hold is a product, except for constraints whose
    values are correlated: of two equal ones, only one counts.

    Parameters
    ----------
    margins : OutcomeModels
        Empty models of the margins, which are the negative values, with
        :class:`ConstraintTransform`.
    """

    def __init__(self, margins: OutcomeModels) -> None:
        self._margins = margins
        self._values: list[FloatArray] = []
        self._rows: list[FloatArray] = []
        # The number of feasible trials among the first 1, 2, ... trials.
        self._n_feasible: list[int] = []
        self._exponents = np.ones((0, 0))
        self._n_correlated = 0

    def __len__(self) -> int:
        return len(self._margins)

    @property
    def models(self) -> list[OutcomeModel]:
        """The models of all constraints."""
        return self._margins.models

    @property
    def n_correlated(self) -> int:
        """Number of trials that the present correlations are computed from, or 0.

        It is 0 while no correlations are valid. Assigning it computes them from so many first
        trials, at most all.
        """
        return self._n_correlated if len(self._exponents) == len(self) else 0

    @n_correlated.setter
    def n_correlated(self, n_trials: int) -> None:
        n_trials = min(n_trials, len(self._values))
        if n_trials > 0:
            self._exponents = _pair_exponents(self._table(n_trials))
        self._n_correlated = n_trials

    @property
    def rows(self) -> list[FloatArray]:
        """The rows of all trials with a known value."""
        return self._rows

    def tell(
        self,
        rows: FloatArray,
        values: FloatArray,
        observed: FloatArray | None = None,
        nan_holds: bool = True,
    ) -> BoolArray:
        """Store the values of trials, O(1) each; see :meth:`OutcomeModels.tell`.

        Trials without a known value are left out.

        Parameters
        ----------
        rows, values, observed
            See :meth:`OutcomeModels.tell`.
        nan_holds : bool, default=True
            Whether a constraint whose value is not known counts as satisfied.

        Returns
        -------
        bool array of shape (m,)
            Which trials satisfy all constraints.
        """
        satisfied = ~(values > 0.0) if nan_holds else values <= 0.0
        feasible = np.asarray(satisfied.all(axis=1))
        is_known = ~np.isnan(values).all(axis=1)
        rows, values = rows[is_known], values[is_known]
        if observed is not None:
            observed = observed[is_known] * (-1.0, 1.0)
        self._margins.tell(rows, -values, observed)
        self._values.extend(values)
        self._rows.extend(rows)
        n_before = self._n_feasible[-1] if self._n_feasible else 0
        self._n_feasible.extend((n_before + np.cumsum(feasible[is_known])).tolist())
        return feasible

    def state(self) -> ConstraintsState:
        """Return what `restore` needs; O(1)."""
        return len(self._values), self.n_correlated, self._margins.state()

    def restore(self, state: ConstraintsState) -> None:
        """Remove what was added after a state; O(what is removed)."""
        n_trials, n_correlated, margins = state
        for kept in (self._values, self._rows, self._n_feasible):
            del kept[n_trials:]
        self._margins.restore(margins)
        self.n_correlated = n_correlated

    def forget(self) -> None:
        """Let all models learn their trials again when they are used next."""
        self._margins.forget()

    def log_probability(self, rows: FloatArray) -> FloatArray:
        """Return the log-probability that all constraints hold; see `JointFeasibility`."""
        return self.feasibility().log_probability(rows)

    def feasibility(self, without: Collection[int] = ()) -> JointFeasibility:
        """Return the probability that constraints hold, of all or without those of some numbers."""
        known = [i for i, model in enumerate(self.models) if len(model.trials) and i not in without]
        if known:
            self._correlate()
        return JointFeasibility(
            [self.models[i] for i in known], self._exponents[np.ix_(known, known)]
        )

    @property
    def exponent(self) -> float:
        """Power of the probability of feasibility by which scores are weighted; O(log n).

        It is larger than 1 while too few of the trials since the first feasible one are feasible.
        """
        first = bisect_left(self._n_feasible, 1)
        n_trials = len(self._n_feasible) - first
        is_scarce = n_trials > 0 and self._n_feasible[-1] < _FEASIBLE_SHARE * n_trials
        return _EXPONENT if is_scarce else 1.0

    def half_spaces(self, space: SearchSpace) -> HalfSpaces | None:
        """Return the constraints that are exactly linear in the rows of a space, or None.

        There are none in a space with conditions or restrictions, and none where no point of the
        space satisfies all of them: every row would then stand for the same few points.
        """
        # Fixed values and constraints between parameters would have to hold at the same time.
        if isinstance(space, RestrictedSpace) or any(
            parameter.condition is not None for parameter in space.values()
        ):
            return None
        found = {
            i: half_space
            for i, model in enumerate(self.models)
            if (half_space := find_half_space(model.trials.rows, model.trials.values)) is not None
        }
        if not found:
            return None
        spaces = HalfSpaces(found, space.grid_sizes == 0)
        upper = np.where(space.is_categorical, space.grid_sizes - 1.0, 1.0)
        return None if spaces.exclude_each_other(upper) else spaces

    def outcome_moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations in the constraints' units, both of shape (m, q)."""
        mean, std = self._margins.outcome_moments(rows)
        return -mean, std

    def least_violating(self, feasibility: JointFeasibility) -> FloatArray:
        """Return the rows of the trials that are most probably feasible, shape (k, d)."""
        rows = np.array(self._rows)
        return rows[np.argsort(-feasibility.log_probability(rows), kind="stable")[:_N_STARTS]]

    def imputing(self, rows: FloatArray, rng: np.random.Generator) -> AbstractContextManager[None]:
        """Impute running trials with values drawn from the models inside a ``with`` block."""
        return self._margins.imputing(rows, rng)

    def _correlate(self) -> None:
        """Compute the exponents of pairs of constraints from their trials, when it is due."""
        n_trials = len(self._values)
        if n_trials < REFIT_GROWTH * self.n_correlated:
            return
        self.n_correlated = n_trials

    def _table(self, n_trials: int) -> FloatArray:
        """Return the values of the first trials, shape (n_trials, q); NaN where unknown."""
        table = np.full((n_trials, len(self)), np.nan)
        for row, values in zip(table, self._values, strict=False):
            row[: len(values)] = values
        return table


class JointFeasibility:
    """The probability that some constraints hold; a ``Feasibility`` of acquisitions.

    Parameters
    ----------
    models : list of OutcomeModel
        Models of q constraints with trials.
    exponents : float64 array of shape (q, q)
        By how much the second of two constraints counts.
    """

    def __init__(self, models: list[OutcomeModel], exponents: FloatArray) -> None:
        self._events = [(model, _threshold(model.transform)) for model in models]
        self._exponents = exponents

    def __len__(self) -> int:
        return len(self._events)

    def log_probability(self, rows: FloatArray) -> FloatArray:
        """Return the logarithm of the probability that all of them hold, shape (m,).

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Where to predict.
        """
        logs = [
            log_probabilities_above(*model.predict(rows), bound)[0] for model, bound in self._events
        ]
        return self._combined(logs, len(rows))[0]

    @property
    def n_smooth_components(self) -> int:
        """Number of components of predictions with gradients; 0 without gradients."""
        numbers = [model.n_smooth_components for model, _ in self._events]
        return sum(numbers) if all(numbers) else 0

    def gradients(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `log_probability`, shape (m,), and its derivatives, shape (m, d)."""
        logs, gradients = [], []
        for model, bound in self._events:
            log, gradient = log_probability_gradients(tuple(model.gradients(rows)), bound)
            logs.append(log)
            gradients.append(gradient)
        total, factors = self._combined(logs, len(rows))
        if not gradients:
            return total, np.zeros(rows.shape)
        return total, _weighted_sum(factors, np.array(gradients))

    def _combined(self, logs: list[FloatArray], n_rows: int) -> tuple[FloatArray, FloatArray]:
        """Return the logarithm of the probability of all events, and its derivatives by theirs."""
        if not logs:
            return np.zeros(n_rows), np.ones((0, n_rows))
        return _joint(np.array(logs), self._exponents)


def _threshold(transform: Transform) -> float:
    assert isinstance(transform, ConstraintTransform)
    return transform.threshold


def _pair_exponents(values: FloatArray) -> FloatArray:
    """Return by how much the second of two constraints counts, shape (q, q).

    Two standard normal variables of correlation r are both positive with probability
    ``1/4 + asin(r) / (2 pi)``: the second has the probability ``(1/2) ** w`` where the first is,
    with the exponent ``w = -log2(1/2 + asin(r) / pi)``. It is 1 at r = 0 and 0 at r = 1. Negative
    correlations count as 0.
    """
    n_constraints = values.shape[1]
    exponents = np.ones((n_constraints, n_constraints))
    for i in range(n_constraints):
        for j in range(i):
            both = values[~np.isnan(values[:, i]) & ~np.isnan(values[:, j])][:, [i, j]]
            if len(both) < 2:
                continue
            first, second = (ConstraintTransform(-column)(-column) for column in both.T)
            correlation = float(first @ second) / (len(both) + _PRIOR_TRIALS)
            angle = math.asin(min(max(correlation, 0.0), 1.0))
            exponents[i, j] = exponents[j, i] = -math.log2(0.5 + angle / math.pi)
    return exponents


def _joint(logs: FloatArray, exponents: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log-probabilities of joint events, shape (m,), and the exponents used, (q, m).

    The least probable event counts fully. Each further one, in ascending order of probability,
    counts with its smallest exponent beside those before it.
    """
    # Numba takes more than a second to compile a sort.
    total, factors = _ordered_joint(logs, np.argsort(logs, axis=0), exponents)
    return total, factors


@njit(cache=True, nogil=True)
def _ordered_joint(logs, orders, exponents):  # type: ignore[no-untyped-def]
    """Compute `_joint`; columns of `orders`, shape (q, m), have the least probable event first."""
    n_events, m = logs.shape
    total, factors = np.zeros(m), np.ones((n_events, m))
    for k in range(m):
        for a in range(n_events):
            i = orders[a, k]
            for b in range(a):
                factors[i, k] = min(factors[i, k], exponents[i, orders[b, k]])
            total[k] += factors[i, k] * logs[i, k]
    return total, factors


@njit(cache=True, nogil=True)
def _weighted_sum(factors, gradients):  # type: ignore[no-untyped-def]
    """Return the sum of gradients, shape (q, m, d), by factors (q, m); 0 where it is not finite."""
    n_events, m, d = gradients.shape
    gradient = np.zeros((m, d))
    for a in range(n_events):
        for i in range(m):
            for j in range(d):
                gradient[i, j] += factors[a, i] * gradients[a, i, j]
    for i in range(m):
        for j in range(d):
            if not math.isfinite(gradient[i, j]):
                gradient[i, j] = 0.0
    return gradient

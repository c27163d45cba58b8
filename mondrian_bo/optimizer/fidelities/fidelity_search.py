"""A search that chooses the fidelity of each trial."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from mondrian_bo.acquisitions.base import mixture_moments
from mondrian_bo.acquisitions.log_expected_improvement import log_gaussian_expected_improvement
from mondrian_bo.optimizer.fidelities.cost_model import CostModel
from mondrian_bo.optimizer.fidelities.fidelity import Fidelity, turn_of
from mondrian_bo.optimizer.fidelities.fidelity_surrogate import with_fidelity
from mondrian_bo.optimizer.fidelities.target_space import TargetSpace
from mondrian_bo.optimizer.models.outcome_model import NewSurrogate, OutcomeModel
from mondrian_bo.optimizer.search.request import Request
from mondrian_bo.optimizer.search.search import Search
from mondrian_bo.optimizer.search.search_factory import (
    OutcomeModelParts,
    SearchFactory,
    SearchParts,
)
from mondrian_bo.optimizer.shared.search_trials import SearchTrials
from mondrian_bo.search_space import RestrictedSpace, SearchSpace
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.shared.blas_threads import single_threaded_blas
from mondrian_bo.surrogates.base import CovariantSurrogate, Surrogate

_MOST_SPENT = 1.0
"""The next trial runs at the target when the trials since the last one there have cost so much, in
costs of a trial at the target; our choice. At least half of all costs are then spent there."""

_LATEST = 200
"""Number of latest trials whose predictions at the target are compared, our choice."""

_N_PROMISING = 10
"""Number of the best of them that candidates start from, as of the best trials."""

_N_DRAWS = 256
"""Draws of a function behind a covariance, where the model has no covariances; our choice."""

_NODES = np.linspace(-8.0, 8.0, 257)
"""Standardised outcomes of a cheap trial: beyond them the normal density is below 1e-14. The width
of 1/16 is small against the deviation."""

_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()
"""Their probabilities."""

_MOST_LOG = 50.0
"""Cap of the logarithms of two ratios: of expected improvements, which has the mean 1, and of
costs, which matters up to 1."""


class FidelityModel(OutcomeModel):
    """An :class:`OutcomeModel` whose value to beat is one at the target fidelity.

    Parameters
    ----------
    fidelity : Fidelity
        The fidelity.
    *others : object
        Parameters of :class:`OutcomeModel`.
    """

    def __init__(self, fidelity: Fidelity, *others: Any) -> None:
        self._fidelity = fidelity
        super().__init__(*others)

    def value_to_beat(self) -> float:
        """Return the largest predicted mean among the best trials at the target.

        Before the first of these, that of all points that were tried.
        """
        if len(self.trials.best_rows(eligible=True)):
            return super().value_to_beat()
        return float(self.at_target(self.trials.rows[-_LATEST:])[1].max())

    def at_target(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Move rows (m, d) to the target, and predict their means there, shape (m,)."""
        moved = self._fidelity.at(rows, self._fidelity.unit)
        return moved, mixture_moments(self.predict(moved))[0]

    def joint(self, rows: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Predict means, shape (m,), and covariances, (m, m), of transformed values at rows.

        The scale of the covariances is calibrated, as that of deviations.
        """
        surrogate = self.surrogate
        if isinstance(surrogate, CovariantSurrogate):
            means, covariances = surrogate.joint(rows)
            return means, self._calibration.scale**2 * covariances
        draws = self.draw_at(rows, _N_DRAWS, rng)
        return draws.mean(axis=0), np.atleast_2d(np.cov(draws, rowvar=False))


@dataclass(eq=False)
class FidelitySearch(Search):
    """A :class:`Search` for the best point at the target fidelity.

    An acquisition chooses a point at the target, as in any search. Then :func:`screening_gains`
    compares the fidelities at which the trial may run. First trials are cheap. Trials at other
    fidelities must not be told as eligible, so that they are no incumbents.

    Parameters
    ----------
    *fields : object
        Those of a :class:`Search` with models of type :class:`FidelityModel`.
    fidelity : Fidelity
        The fidelity.
    costs : CostModel
        Costs of trials.
    """

    fidelity: Fidelity = field(kw_only=True)
    costs: CostModel = field(kw_only=True)
    _target_space: tuple[SearchSpace, TargetSpace] | None = field(default=None, init=False)

    def suggest(self, request: Request) -> FloatArray:
        """Return the row of the next trial, shape (d,), see :meth:`Search.suggest`."""
        space, trials = request.space, self.trials
        if isinstance(space, RestrictedSpace) and self.fidelity.name in space.fixed:
            # The user has set the fidelity of this trial.
            return super().suggest(request)
        if self._target_space is None or self._target_space[0] is not space:
            self._target_space = space, TargetSpace(space, self.fidelity)
        at_target = replace(request, space=self._target_space[1])
        if not self._needs_model(len(request.pending)):
            # Failed trials have an index and no value; trials that users add have no index.
            n_started = max(request.index, len(trials) + len(request.pending))
            return self._first(super().suggest(at_target), n_started, request)
        (model,) = self.arms[0][0].models
        assert isinstance(model, FidelityModel)
        tried, means = model.at_target(trials.rows[-_LATEST:])
        # Trials may lack any parameter.
        tried = tried[np.argsort(-means, kind="stable")]
        tried = at_target.space.snap(at_target.space.filled(tried))
        starts = np.concatenate([trials.best_rows(eligible=True), tried[:_N_PROMISING]])
        if not self._has_target(request.pending):
            for row in tried:
                if self._is_free(row, request):
                    return np.asarray(row)
        ahead = Search(trials, self.arms, 0, self.n_candidates, self.shift, starts=starts)
        return self._at_best_fidelity(model, ahead.suggest(at_target), request)

    def _has_target(self, pending: FloatArray) -> bool:
        """Whether a trial at the target has a value, or is running."""
        is_running = bool(self.fidelity.is_target(pending).any())
        return is_running or len(self.trials.best_rows(eligible=True)) > 0

    def _is_free(self, row: FloatArray, request: Request) -> bool:
        """Whether a row may be suggested."""
        valid = request.valid
        return not request.is_taken(row) and (valid is None or bool(valid.contains(row[None])[0]))

    def _first(self, row: FloatArray, n_started: int, request: Request) -> FloatArray:
        """Return one of the first trials, from a row at the target.

        Every second one is at the fidelity farthest from the target. Of the others every second one
        is at a fidelity of medium cost, and the rest are the best points so far, at the target.
        Trials that have failed count, as the cheapest fidelity may always fail. The given row is at
        the target then.
        """
        turn = turn_of(n_started)
        levels = request.space.snap(self._levels(row))
        if not len(levels):
            return row
        cheapest = levels[0]
        if turn > 2:
            rows, values = self.trials.rows, self.trials.values
            far = np.flatnonzero(rows[:, self.fidelity.column] == cheapest[self.fidelity.column])
            if not len(far):
                return row
            best = rows[far[np.argsort(-values[far], kind="stable")]]
            at_target = self.fidelity.at(best, self.fidelity.unit)
            for one in request.space.snap(request.space.filled(at_target)):
                if self._is_free(one, request):
                    return np.asarray(one)
        ratios = self.costs.log_ratios(levels)
        middle = levels[int(np.argmin(np.abs(ratios - 0.5 * ratios[0])))]
        for one in (middle, cheapest) if turn == 2 else (cheapest, middle):
            if self._is_free(one, request):
                return np.asarray(one)
        return row

    def _levels(self, row: FloatArray) -> FloatArray:
        """Return a row at all other fidelities, shape (k, d); none if it has no fidelity."""
        if math.isnan(row[self.fidelity.column]):
            return row[None][:0]
        rows = np.repeat(row[None], len(self.fidelity.levels), axis=0)
        return self.fidelity.at(rows, self.fidelity.levels)

    def _spent(self, pending: FloatArray) -> float:
        """Return the cost of trials since the last one at the target."""
        rows = np.concatenate([self.trials.rows[-_LATEST:], pending])
        full = np.flatnonzero(self.fidelity.is_target(rows))
        since = rows[full[-1] + 1 if len(full) else 0 :]
        return float(np.exp(np.minimum(self.costs.log_ratios(since), _MOST_LOG)).sum())

    def _at_best_fidelity(
        self, model: FidelityModel, row: FloatArray, request: Request
    ) -> FloatArray:
        """Return a row, chosen at the target, at the fidelity at which its trial should run."""
        levels = request.space.snap(self._levels(row))
        levels = levels[[self._is_free(one, request) for one in levels]]
        ratios = np.exp(np.minimum(self.costs.log_ratios(levels), _MOST_LOG))
        levels, ratios = levels[ratios < 1.0], ratios[ratios < 1.0]
        if not len(levels) or self._spent(request.pending) >= _MOST_SPENT:
            return row
        rows = np.concatenate([levels, row[None]])
        with single_threaded_blas(), model.imputing(request.pending, request.rng):
            means, covariances = model.joint(rows, request.rng)
            gap = float(means[-1]) - model.value_to_beat()
            noise = model.noise(levels) ** 2
        variances = np.maximum(covariances.diagonal()[:-1], 0.0) + noise
        with np.errstate(divide="ignore", invalid="ignore"):
            learnt = np.nan_to_num(np.abs(covariances[:-1, -1]) / np.sqrt(variances))
        std = math.sqrt(max(float(covariances[-1, -1]), 0.0))
        values = screening_gains(gap, std, learnt) - ratios
        best = int(np.argmax(values))
        return np.asarray(levels[best] if values[best] > 0.0 else row)


def screening_gains(gap: float, std: float, learnt: FloatArray) -> FloatArray:
    """Return what cheap trials before a trial at the target are worth, in costs of the latter.

    The outcome at the target has a normal distribution with an expected improvement EI. A cheap
    trial first moves the mean by a normal amount, which leaves less variance and another expected
    improvement EI'. The trial at the target then only runs if that is worth its cost. The price of
    a cost is what the trial without the cheap one pays, EI for each cost c of the target. So the
    cheap trial is worth E[max(EI' - EI, 0)] / EI, in costs c. This is the rule of the optimal
    policy of Weitzman (1979), Optimal search for the best alternative, one step ahead. It is worth
    0 if it tells nothing of the target, and at most 1.

    Parameters
    ----------
    gap : float
        Mean at the target minus the value to beat.
    std : float
        Standard deviation at the target.
    learnt : float64 array of shape (k,)
        Standard deviations of the change of the mean by each of k cheap trials.

    Returns
    -------
    float64 array of shape (k,)
        In [0, 1].
    """
    if std <= 0.0 or not math.isfinite(gap):
        return np.zeros(len(learnt))
    learnt = np.minimum(learnt, std)
    remaining = np.sqrt(np.maximum(std**2 - learnt**2, 0.0))[:, None]
    now = log_gaussian_expected_improvement(np.array([gap]), np.array([std]))
    gaps = gap + learnt[:, None] * _NODES
    then = log_gaussian_expected_improvement(gaps, np.broadcast_to(remaining, gaps.shape))
    ratios = np.exp(np.minimum(np.nan_to_num(then - now, nan=-np.inf), _MOST_LOG))
    return np.asarray(np.minimum(np.maximum(ratios - 1.0, 0.0) @ _WEIGHTS, 1.0))


class FidelitySearchFactory(SearchFactory):
    """Makes searches for the best point at the target fidelity.

    Parameters
    ----------
    parts : SearchParts
        What all searches have in common.
    fidelity : Fidelity
        The fidelity.
    costs : CostModel
        Costs of trials.
    """

    def __init__(self, parts: SearchParts, fidelity: Fidelity, costs: CostModel) -> None:
        super().__init__(parts)
        self._fidelity, self._costs = fidelity, costs

    def new(self, trials: SearchTrials, number: int) -> Search:
        """Return a search over empty `trials`, with new models."""
        plain = super().new(trials, number)
        # Values of different fidelities do not tell which trials are good.
        arms = [
            (model, replace(arm, quadratic=0.0, evolution=0.0, plateau=0.0, exploration=0.0))
            for model, arm in plain.arms
        ]
        return FidelitySearch.like(
            plain, arms=arms, new_rugged=None, fidelity=self._fidelity, costs=self._costs
        )

    def _new_objective(self, parts: OutcomeModelParts, number: int) -> OutcomeModel:
        """Return an empty model that expects fidelities to be correlated."""
        new_surrogate = partial(_correlated, parts.new_surrogate, self._fidelity)
        parts = parts._replace(new_surrogate=new_surrogate, chooses_scale=False)
        return FidelityModel(self._fidelity, *parts)


def _correlated(new_surrogate: NewSurrogate, fidelity: Fidelity) -> Surrogate:
    return with_fidelity(new_surrogate(), fidelity)

"""A search that starts from the trials of earlier studies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from mondrian_bo.optimizer.earlier_studies.earlier_mean import (
    APART,
    EarlierMean,
    EarlierModel,
    SmoothEarlierMean,
)
from mondrian_bo.optimizer.earlier_studies.earlier_trials import N_START, EarlierTrials
from mondrian_bo.optimizer.maximization.candidates import quasi_random_rows
from mondrian_bo.optimizer.models.outcome_model import NewSurrogate, OutcomeModel
from mondrian_bo.optimizer.search.request import Request
from mondrian_bo.optimizer.search.search import Search
from mondrian_bo.optimizer.search.search_factory import (
    OutcomeModelParts,
    SearchFactory,
    SearchParts,
)
from mondrian_bo.optimizer.shared.search_trials import SearchTrials
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.search_space.space import row_gaps
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.base import Surrogate
from mondrian_bo.surrogates.gaussian_process_forest.surrogate import GaussianProcessForestSurrogate


@dataclass(eq=False)
class WarmSearch(Search):
    """A :class:`Search` whose first trials are, in turn, good ones of earlier studies and others.

    Attributes
    ----------
    earlier : sequence of EarlierModel
        The earlier studies.
    """

    earlier: Sequence[EarlierModel] = field(kw_only=True)

    @property
    def earlier_weights(self) -> FloatArray:
        """The present weights of the earlier studies, shape (K,)."""
        surrogate = self.arms[0][0].models[0].surrogate
        assert isinstance(surrogate, EarlierMean)
        return surrogate.weights

    def suggest(self, request: Request) -> FloatArray:
        """Return the row of the next trial, shape (d,), see :meth:`Search.suggest`."""
        pending, valid = request.pending, request.valid
        n_started, n_warm = len(self.trials) + len(pending), self._n_warm
        if n_started == 0 or (n_started < n_warm and n_started % 2 == 0):
            # Of two studies, the first trials are the best of each.
            model = self.earlier[(n_started // 2) % len(self.earlier)]
            rows = _within(request.space, model.good_rows(), request.index, self.shift)
            for row in _apart_first(rows, np.vstack([self.trials.rows, pending])):
                if not request.is_taken(row) and (valid is None or valid.contains(row[None])[0]):
                    return np.asarray(row)
        # The middle of the space is the first trial that no earlier study gives.
        return super().suggest(replace(request, index=0) if n_started == 1 else request)

    @property
    def _n_warm(self) -> int:
        """Number of first trials among which are those of earlier studies."""
        return min(N_START, self.n_startup_trials)

    def _needs_model(self, n_pending: int) -> bool:
        """Return whether the model makes a suggestion; once an earlier study has a weight, it does.

        The parameter is that of :meth:`Search._needs_model`.
        """
        n_trials = len(self.trials)
        is_started = n_trials > 0 and n_trials + n_pending >= self._n_warm
        if is_started and self.earlier_weights.any():
            return True
        return super()._needs_model(n_pending)


def _within(space: SearchSpace, rows: FloatArray, index: int, shift: FloatArray) -> FloatArray:
    """Move rows into a space, with quasi-random values of parameters that they lack."""
    missing = np.isnan(rows)
    return space.snap(np.where(missing, quasi_random_rows(space, index, 1, shift), rows))


def _apart_first(rows: FloatArray, trials: FloatArray) -> FloatArray:
    """Return rows, shape (m, d), those apart from all trials, shape (n, d), before the others.

    The first trial may have the values of the best earlier one, whose point is nearly that of the
    best predicted mean.
    """
    is_near = [(row_gaps(trials, row).max(axis=1, initial=0.0) < APART).any() for row in rows]
    return rows[np.argsort(is_near, kind="stable")]


class WarmSearchFactory(SearchFactory):
    """Makes searches of which the first one starts from earlier studies, and restarts do not.

    Parameters
    ----------
    parts : SearchParts
        What all searches have in common.
    earlier : sequence of EarlierTrials
        The earlier studies, at least one; larger values are better.
    earlier_seed : numpy.random.SeedSequence
        Source of the seeds of their models.
    """

    def __init__(
        self,
        parts: SearchParts,
        earlier: Sequence[EarlierTrials],
        earlier_seed: np.random.SeedSequence,
    ) -> None:
        super().__init__(parts)
        seeds = earlier_seed.spawn(len(earlier))
        self.earlier = [
            EarlierModel(trials, parts.space.n_choices, seed)
            for trials, seed in zip(earlier, seeds, strict=True)
        ]

    def new(self, trials: SearchTrials, number: int) -> Search:
        """Return a search over empty `trials`; the one of number 0 knows the earlier studies."""
        cold = super().new(trials, number)
        if number > 0 or trials.n_objectives > 1:
            return cold
        # Earlier studies predict values that those of this study do not.
        arms = [(model, replace(arm, exploration=0.0)) for model, arm in cold.arms]
        return WarmSearch.like(cold, arms=arms, new_rugged=None, earlier=self.earlier)

    def _new_objective(self, parts: OutcomeModelParts, number: int) -> OutcomeModel:
        """Return an empty model; the first search has the earlier studies as its prior mean."""
        if number == 0:
            new_surrogate = partial(_on_earlier_mean, parts.new_surrogate, self.earlier)
            parts = parts._replace(new_surrogate=new_surrogate, chooses_scale=False)
        return super()._new_objective(parts, number)


def _on_earlier_mean(new_surrogate: NewSurrogate, earlier: Sequence[EarlierModel]) -> Surrogate:
    """Return an empty surrogate with the earlier studies as its prior mean."""
    inner = new_surrogate()
    if isinstance(inner, GaussianProcessForestSurrogate):
        return SmoothEarlierMean(inner, earlier)
    return EarlierMean(inner, earlier)

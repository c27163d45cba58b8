"""A search: trials, models of them, and the choice of the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mondrian_bo.acquisitions import (
    Acquisition,
    Prediction,
    ThompsonSampling,
    UpperConfidenceBound,
)
from mondrian_bo.acquisitions.feasibility import Score, constrained
from mondrian_bo.acquisitions.gradients import gradient_of, moved_moments
from mondrian_bo.array_types import FloatArray
from mondrian_bo.optimizer.candidates import maximize, spread
from mondrian_bo.optimizer.local_search import Gradients, improve
from mondrian_bo.optimizer.objective_model import ObjectiveModel
from mondrian_bo.optimizer.trials import Trials
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.surrogates.shared.threads import single_threaded_blas

_STEPS = 20
"""Gradient steps with one component."""

_FEWEST_STEPS = 8


class Search:
    """Trials, models of them with their acquisitions, and the choice of the next trial.

    Parameters
    ----------
    trials : Trials
        The trials, which may grow.
    arms : sequence of (ObjectiveModel, sequence of Acquisition)
        One model, and one of its acquisitions, is drawn for each trial.
    n_startup_trials : int
        So many first trials are quasi-random.
    n_candidates : int
        How many candidates to score for each suggestion.
    shift : float64 array of shape (d,)
        Shift of the quasi-random sequence.
    """

    def __init__(
        self,
        trials: Trials,
        arms: Sequence[tuple[ObjectiveModel, Sequence[Acquisition]]],
        n_startup_trials: int,
        n_candidates: int,
        shift: FloatArray,
    ) -> None:
        self.trials = trials
        self.arms = arms
        self._n_startup_trials = n_startup_trials
        self._n_candidates = n_candidates
        self._shift = shift

    def suggest(
        self,
        space: SearchSpace,
        pending: FloatArray,
        index: int,
        rng: np.random.Generator,
        is_taken: Callable[[FloatArray], bool],
        log_probability: Score | None = None,
    ) -> FloatArray:
        """Return the row of the next trial, shape (d,).

        Parameters
        ----------
        space : SearchSpace
            Where to search: the space of the trials or a part of it.
        pending : float64 array of shape (k, d)
            Trials that are running.
        index : int
            Which point of the quasi-random sequence to take while there is no model.
        rng : numpy.random.Generator
            Source of all other randomness.
        is_taken : callable
            Whether a row need not be tried any more.
        log_probability : callable or None, default=None
            Logarithm of the probability that rows satisfy constraints on other outcomes.
        """

        def best_of(score: Score, local: Callable[[FloatArray], FloatArray] | None) -> FloatArray:
            starts = self.trials.incumbents() if len(self.trials) else space.sample(1, rng)
            return maximize(score, space, starts, is_taken, rng, self._n_candidates, local)

        if len(self.trials) == 0 or len(self.trials) + len(pending) < self._n_startup_trials:
            row = spread(space, index, 1, self._shift)[0]
            # A space of few points repeats them.
            return best_of(lambda some: rng.random(len(some)), None) if is_taken(row) else row
        model, acquisitions = self.arms[int(rng.integers(len(self.arms)))]
        acquisition = acquisitions[int(rng.integers(len(acquisitions)))]
        # Models ask for one thread where they need it; to ask once is cheaper.
        with single_threaded_blas(), model.pending(pending):
            score, gradients = _rule(model, acquisition, rng)
            if log_probability is not None:
                # While no trial is feasible, the first thing is to find one.
                feasible = len(self.trials.feasible_incumbents()) > 0
                weighted = (
                    constrained(acquisition, score, log_probability)
                    if feasible
                    else log_probability
                )
                return best_of(weighted, None)
            if gradients is None:
                return best_of(score, None)
            # Components cost as much as steps.
            n_steps = max(_STEPS // model.n_gradients, _FEWEST_STEPS)
            return best_of(score, lambda rows: improve(score, gradients, space, rows, n_steps))


def _rule(
    model: ObjectiveModel, acquisition: Acquisition, rng: np.random.Generator
) -> tuple[Score, Gradients | None]:
    """Return the score of candidates and, where the model has them, its derivatives."""
    if isinstance(acquisition, ThompsonSampling):
        return model.draw(rng), None
    incumbent = model.value_to_beat()
    # Late in a search most predictions are of near neighbours of the best trial, and calibration
    # narrows the variances to what they deserve. That sharpens the choice among improvements; an
    # upper confidence bound would stop exploring.
    calibrated = not isinstance(acquisition, UpperConfidenceBound)

    def score(rows: FloatArray) -> FloatArray:
        return acquisition(model.predict(rows, calibrated), incumbent)

    def gradients(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        means, stds, mean_gradients, std_gradients = model.gradients(rows, calibrated)
        scores = acquisition(Prediction(*moved_moments(means, stds)), incumbent)
        return scores[: len(rows)], gradient_of(scores, stds, mean_gradients, std_gradients)

    return score, gradients if model.n_gradients > 0 else None

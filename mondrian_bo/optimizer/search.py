"""A search: trials, models of them, and the choice of the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mondrian_bo.acquisitions.base import Acquisition, Prediction, Usage
from mondrian_bo.acquisitions.feasibility import Score, constrained
from mondrian_bo.array_types import FloatArray
from mondrian_bo.optimizer.candidates import maximize, spread
from mondrian_bo.optimizer.local_search import Gradients, gradient_of, improve, moved_moments
from mondrian_bo.optimizer.objective_model import ObjectiveModel, mixed_moments
from mondrian_bo.optimizer.portfolio import SearchSettings
from mondrian_bo.optimizer.trials import Trials
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.surrogates.registry import get_surrogate
from mondrian_bo.surrogates.shared.threads import single_threaded_blas

_STEPS = 20
"""Gradient steps of a local search over a prediction with one component: our choice."""

_FEWEST_STEPS = 8
"""Smallest number of gradient steps. A step costs as much as there are components, so the number of
steps falls with them."""


@dataclass(eq=False)
class Search:
    """Trials, models of them with their acquisitions, and the choice of the next trial.

    Parameters
    ----------
    trials : Trials
        The trials. More may be added later.
    arms : sequence of (ObjectiveModel, sequence of Acquisition)
        One model, and one of its acquisitions, is drawn for each trial.
    n_startup_trials : int
        Number of quasi-random first trials.
    n_candidates : int
        Number of candidates to score for each suggestion.
    shift : float64 array of shape (d,)
        Shift of the quasi-random sequence.
    """

    trials: Trials
    arms: Sequence[tuple[ObjectiveModel, Sequence[Acquisition]]]
    n_startup_trials: int
    n_candidates: int
    shift: FloatArray

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
            Index of the point in the quasi-random sequence, used while there is no model.
        rng : numpy.random.Generator
            Source of all other randomness.
        is_taken : callable
            Whether a row of shape (d,) has been tried or is running.
        log_probability : callable or None, default=None
            Logarithm of the probability that rows satisfy constraints on other outcomes.
        """
        n_trials, n_candidates = len(self.trials), self.n_candidates
        if n_trials == 0 or n_trials + len(pending) < self.n_startup_trials:
            row: FloatArray = spread(space, index, 1, self.shift)[0]
            if not is_taken(row):
                return row
            # In a small finite space the sequence repeats its points.
            starts = self.trials.incumbents() if n_trials else space.sample(1, rng)
            return maximize(
                lambda rows: rng.random(len(rows)), space, starts, is_taken, rng, n_candidates
            )
        model, acquisitions = self.arms[int(rng.integers(len(self.arms)))]
        acquisition = acquisitions[int(rng.integers(len(acquisitions)))]
        local: Callable[[FloatArray], FloatArray] | None = None
        # Models limit BLAS to one thread themselves; one limit around all calls is cheaper.
        with single_threaded_blas(), model.pending(pending):
            score, gradients = _score_of(model, acquisition, rng)
            if log_probability is not None:
                # While no trial is feasible, only feasibility counts.
                feasible = len(self.trials.incumbents(feasible=True)) > 0
                score = (
                    constrained(acquisition, score, log_probability)
                    if feasible
                    else log_probability
                )
            elif gradients is not None:
                # The cost is proportional to components times steps.
                n_steps = max(_STEPS // model.n_gradients, _FEWEST_STEPS)
                local = partial(improve, score, gradients, space, n_steps=n_steps)
            incumbents = self.trials.incumbents()
            return maximize(score, space, incumbents, is_taken, rng, n_candidates, local)

    def outcome_moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict mean and standard deviation in the units of the values, both of shape (m,).

        The prediction is the equally weighted mixture of those of all arms.
        """
        return mixed_moments([model.outcome_moments(rows) for model, _ in self.arms])


def _score_of(
    model: ObjectiveModel, acquisition: Acquisition, rng: np.random.Generator
) -> tuple[Score, Gradients | None]:
    """Return the score of candidates and, where the model has them, its gradients."""
    usage: Usage = getattr(acquisition, "usage", Usage())
    if usage.samples_function:
        return model.draw(rng), None
    incumbent = model.value_to_beat()
    calibrated = usage.uses_calibrated_variances

    def score(rows: FloatArray) -> FloatArray:
        return acquisition(model.predict(rows, calibrated), incumbent)

    def gradients(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        means, stds, mean_gradients, std_gradients = model.gradients(rows, calibrated)
        scores = acquisition(Prediction(*moved_moments(means, stds)), incumbent)
        return scores[: len(rows)], gradient_of(scores, stds, mean_gradients, std_gradients)

    return score, gradients if model.n_gradients > 0 else None


class SearchFactory:
    """Makes the searches of one optimizer, which have the same settings and different seeds.

    Parameters
    ----------
    space : SearchSpace
        The space of the trials.
    settings : SearchSettings
        Surrogate, portfolio and numbers.
    may_be_absent : bool
        Whether rows may hold NaN.
    seed : numpy.random.SeedSequence
        Source of the seeds.
    """

    def __init__(
        self,
        space: SearchSpace,
        settings: SearchSettings,
        may_be_absent: bool,
        seed: np.random.SeedSequence,
    ) -> None:
        self._n_choices = space.n_choices
        self._settings = settings
        self._may_be_absent = may_be_absent
        self._seed = seed

    def new(self, trials: Trials) -> Search:
        """Return a search over empty `trials`, with new models."""
        settings = self._settings
        arms = settings.portfolio.arms
        *seeds, shift_seed = self._seed.spawn(1)[0].spawn(len(arms) + 1)
        new_surrogate = get_surrogate(settings.surrogate)
        n_estimators = settings.n_estimators
        chosen = {} if n_estimators is None else {"n_estimators": n_estimators}
        models = [
            ObjectiveModel(
                new_surrogate(
                    self._n_choices, self._may_be_absent, seed, **{**arm.options, **chosen}
                ),
                trials,
                arm.power,
            )
            for arm, seed in zip(arms, seeds, strict=True)
        ]
        return Search(
            trials,
            [(model, arm.acquisitions) for model, arm in zip(models, arms, strict=True)],
            settings.n_startup_trials,
            settings.n_candidates,
            np.random.default_rng(shift_seed).random(len(self._n_choices)),
        )

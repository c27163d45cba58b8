"""The model of several objectives: one model each, and the hypervolume that a trial may add."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np
from numba import njit

from mondrian_bo.acquisitions.base import (
    Acquisition,
    Score,
    ScoreGradients,
    Usage,
    checked,
    mixture_moments,
    usage_of,
)
from mondrian_bo.acquisitions.hypervolume_improvement import (
    log_expected_hypervolume_improvement,
    log_expected_hypervolume_improvement_gradient,
)
from mondrian_bo.acquisitions.pareto import BoxDecomposition, decompose, non_dominated
from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.optimizer.pareto.pareto_trials import ParetoTrials
from mondrian_bo.shared.array_types import FloatArray

_MARGIN = 0.1
"""Distance of the reference point below the worst values of the front, in ranges of the front: a
usual choice (Ishibuchi et al., 2018), for which extreme points have a hypervolume too."""

_SHARE_OF_EXTENSIONS = {2: 0.5, 3: 0.0, 4: 0.0}
"""Share of suggestions for which the reference point lies below all trials, by the number of
objectives: our choice. With two, some problems need one of both rules (ZDT3 and CONSTR this one,
DTLZ2 the other). With more, there are too many ends of the front."""

_SHARE_AT_REST = 0.1
"""The same once the ends of the front are at rest, our choice. Such a reference point gives a gain
beyond an end so much volume that the model's last uncertainty of it outweighs gaps of the front."""

_REST = 40
"""Number of latest trials in which no end has moved then, our choice."""

_LEAST_MOVE = 0.01
"""Least move of an end that counts, as a share of the front's range: our choice."""

_LARGEST_FRONT = {2: 500, 3: 200, 4: 80}
"""Largest number of points of the front whose hypervolume is computed, by number of objectives: the
number of boxes grows with its 1st, 1st and 2nd power. Of a larger front a random part counts."""


class ParetoModel:
    """Models of K objectives; scores are logarithms of expected hypervolume improvements.

    Objectives are independent given the trials. All computations are on the transformed scale of
    each objective, where a monotone transform does not change what dominates.

    Parameters
    ----------
    models : sequence of K OutcomeModel
        Models of the columns of `trials`.
    trials : ParetoTrials
        The trials.

    Attributes
    ----------
    models : tuple of K OutcomeModel
        As given.
    """

    def __init__(self, models: Sequence[OutcomeModel], trials: ParetoTrials) -> None:
        self.models = tuple(models)
        self._trials = trials
        self._pending: FloatArray | None = None

    def learn(self) -> None:
        """Learn the trials told since the last call."""
        for model in self.models:
            model.learn()

    @property
    def n_smooth_components(self) -> int:
        """Number of components of predictions with gradients; 0 without gradients."""
        numbers = [model.n_smooth_components for model in self.models]
        return sum(numbers) if all(numbers) else 0

    def score(
        self, acquisition: Acquisition, rng: np.random.Generator
    ) -> tuple[Score, ScoreGradients | None]:
        """Return the score of candidates and, where the models have them, its gradients.

        Acquisitions that measure improvements give the expected hypervolume improvement. Others,
        such as a confidence bound or a drawn function, give an optimistic value of each objective,
        and the score is the hypervolume that these values add.

        Parameters
        ----------
        acquisition : Acquisition
            The acquisition.
        rng : numpy.random.Generator
            Source of randomness.
        """
        boxes = self._boxes(rng)
        usage = usage_of(acquisition)
        if not usage.measures_improvement:
            optimistic = [_optimistic(model, acquisition, usage, rng) for model in self.models]

            def added(rows: FloatArray) -> FloatArray:
                values = np.array([function(rows) for function in optimistic]).T
                return log_expected_hypervolume_improvement(values, np.zeros_like(values), boxes)

            return added, None

        def score(rows: FloatArray) -> FloatArray:
            return log_expected_hypervolume_improvement(*self._moments(rows), boxes)

        def gradients(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
            means, stds = np.empty((2, len(rows), len(self.models)))
            by_rows = np.empty((2, len(self.models), *rows.shape))
            for k, model in enumerate(self.models):
                means[:, k], stds[:, k], by_rows[0, k], by_rows[1, k] = model.mixed_gradients(rows)
            scores, by_means, by_stds = log_expected_hypervolume_improvement_gradient(
                means, stds, boxes
            )
            return scores, _chained(by_means, by_stds, by_rows)

        return score, gradients if self.n_smooth_components > 0 else None

    def outcome_moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations in the units of the values, both of shape (m, K)."""
        moments = [model.outcome_moments(rows) for model in self.models]
        return np.array([mean for mean, _ in moments]).T, np.array([std for _, std in moments]).T

    @contextmanager
    def imputing(self, rows: FloatArray, rng: np.random.Generator) -> Iterator[None]:
        """Impute running trials with values drawn from the models inside a ``with`` block."""
        with ExitStack() as stack:
            for model in self.models:
                stack.enter_context(model.imputing(rows, rng))
            self._pending = rows
            try:
                yield
            finally:
                self._pending = None

    def forget(self) -> None:
        """Let all models learn their trials again when they are used next."""
        self._pending = None
        for model in self.models:
            model.forget()

    def _moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations on the transformed scale, both of shape (m, K)."""
        means, stds = np.empty((2, len(rows), len(self.models)))
        for k, model in enumerate(self.models):
            means[:, k], stds[:, k] = mixture_moments(model.predict(rows))
        return means, stds

    def _boxes(self, rng: np.random.Generator) -> BoxDecomposition:
        """Return the boxes of the region that no trial dominates.

        The front is that of predicted means, not of single lucky trials. Running trials
        belong to it with their imputed values. The reference point, unless it is given, lies next
        to the front, which fills its gaps, or below all trials, which extends it.
        """
        rows = self._trials.rows[self._trials.near_front()]
        if not len(rows):
            rows = self._trials.best_rows()
        if self._pending is not None and len(self._pending):
            rows = np.concatenate([rows, self._pending])
        means, _ = self._moments(rows)
        front = means[non_dominated(means)]
        best, worst = front.max(axis=0), front.min(axis=0)
        share = _SHARE_OF_EXTENSIONS[len(self.models)]
        if share > 0.0 and not self._trials.has_extended(_REST, _LEAST_MOVE):
            share = _SHARE_AT_REST
        if rng.random() < share:
            values = [
                model.transform(column.values).min()
                for model, column in zip(self.models, self._trials.columns, strict=True)
            ]
            inferred = np.minimum(values, worst) - _MARGIN
        else:
            inferred = worst - _MARGIN * np.maximum(best - worst, _MARGIN)
        given = self._trials.reference
        reference = np.array(
            [
                inferred[k] if np.isnan(given[k]) else model.transform(given[k : k + 1])[0]
                for k, model in enumerate(self.models)
            ]
        )
        largest = _LARGEST_FRONT[len(self.models)]
        if len(front) > largest:
            front = front[rng.permutation(len(front))[:largest]]
        return decompose(front, reference)


@njit(cache=True, nogil=True)
def _chained(by_means, by_stds, gradients):  # type: ignore[no-untyped-def]
    """Return the derivatives of scores by the rows, shape (m, d); 0 where they are not finite.

    Parameters
    ----------
    by_means, by_stds : float64 arrays of shape (m, K)
        Derivatives of the scores by the moments.
    gradients : float64 array of shape (2, K, m, d)
        Derivatives of means and standard deviations by the rows.
    """
    _, n_objectives, m, d = gradients.shape
    gradient = np.empty((m, d))
    for i in range(m):
        for j in range(d):
            of_means, of_stds = 0.0, 0.0
            for k in range(n_objectives):
                of_means += by_means[i, k] * gradients[0, k, i, j]
                of_stds += by_stds[i, k] * gradients[1, k, i, j]
            total = of_means + of_stds
            gradient[i, j] = total if math.isfinite(total) else 0.0
    return gradient


def _optimistic(
    model: OutcomeModel, acquisition: Acquisition, usage: Usage, rng: np.random.Generator
) -> Callable[[FloatArray], FloatArray]:
    """Return the function that an acquisition gives for one objective, in its transformed units."""
    if usage.samples_function:
        return model.draw(rng)
    calibrated = usage.uses_calibrated_variances
    score = checked(acquisition)
    return lambda rows: score(model.predict(rows, calibrated), 0.0)

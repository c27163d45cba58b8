"""Models of earlier studies, and a surrogate that has them as its prior mean."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
from scipy.optimize import nnls

from mondrian_bo.optimizer.earlier_studies.earlier_trials import EarlierTrials
from mondrian_bo.optimizer.models.outcome_transform import OutcomeTransform
from mondrian_bo.search_space.space import row_gaps
from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.shared.growing_array import GrowingArray
from mondrian_bo.surrogates.base import (
    Columns,
    Gradients,
    RandomFunction,
    Surrogate,
    WeighingSurrogate,
)
from mondrian_bo.surrogates.gaussian_process_forest.surrogate import GaussianProcessForestSurrogate

_IMAGINARY = 3.0
"""Number of trials that the prior of the studies' weights counts as; our choice."""

_FIRST_WEIGHT = 0.75
"""Sum of the weights before the first trial, our choice: related studies are the usual ones."""

_TRUSTED = 10.0
"""Trials from which the influence of earlier studies fades, chosen on six problems: later,
the process predicts the trials better than an earlier study whose optimum is elsewhere."""

_JUDGED_FROM = 10
"""Number of trials from which studies without a significant weight are forgotten, our choice."""

_SIGNIFICANT = 2.33
"""Standard errors of a weight above which it is significant: 1 %, one-sided. It is judged again at
each refit of the transform of the values."""

_RESIDUAL_VARIANCE = 0.5
"""Variance of the residuals of imaginary trials, in variances of the targets; our choice."""


APART = 0.1
"""Least difference of the first trials that an earlier study gives, in sides of the unit cube; our
choice: the best trials of a study are next to each other."""


class EarlierModel:
    """A Gaussian process of the trials of one earlier study; it learns them when it is first used.

    Parameters
    ----------
    trials : EarlierTrials
        The trials, at least one; larger values are better.
    n_choices : int64 array of shape (d,)
        Number of choices of categorical columns, 0 for numeric ones.
    seed : numpy.random.SeedSequence
        Source of all randomness.
    """

    def __init__(
        self, trials: EarlierTrials, n_choices: IntArray, seed: np.random.SeedSequence
    ) -> None:
        self._trials = trials
        self._columns = np.flatnonzero(~np.isnan(trials.rows).all(axis=0))
        self._n_choices = n_choices
        self._seed = seed
        self._learnt: GaussianProcessForestSurrogate | None = None

    @property
    def _surrogate(self) -> GaussianProcessForestSurrogate:
        if self._learnt is None:
            # A sequence counts what it spawns; an interrupted call is repeated.
            surrogate = GaussianProcessForestSurrogate(
                Columns(self._n_choices[self._columns], True), deepcopy(self._seed)
            )
            values = self._trials.values
            surrogate.learn(self._trials.rows[:, self._columns], OutcomeTransform(values)(values))
            self._learnt = surrogate
        return self._learnt

    def means(self, rows: FloatArray) -> FloatArray:
        """Predict the study's standardised values at rows of the present space, shape (m,)."""
        return np.asarray(self._surrogate.predict(rows[:, self._columns])[0].mean(axis=0))

    def gradients(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `means` and their derivatives, shapes (m,) and (m, d)."""
        means, _, own, _ = self._surrogate.gradients(rows[:, self._columns])
        gradients = np.zeros(rows.shape)
        gradients[:, self._columns] = own.mean(axis=0)
        return means.mean(axis=0), gradients

    def good_rows(self) -> FloatArray:
        """Return rows of trials, shape (m, d): good ones that differ come first.

        Each row is the one with the best predicted mean among those that differ from all former
        ones by a tenth of a range or by a choice; the others follow. Infeasible trials are left
        out, unless there are no others.
        """
        rows, feasible = self._trials.rows, self._trials.is_feasible
        if feasible is not None and feasible.any():
            rows = rows[feasible]
        order = np.argsort(-self.means(rows), kind="stable")
        seen, others = rows[order[:1]], []
        for i in order[1:]:
            gaps = row_gaps(seen, rows[i], self._n_choices > 0)
            if (gaps.max(axis=1) < APART).any():
                others.append(i)
            else:
                seen = np.vstack([seen, rows[i]])
        return np.vstack([seen, rows[others]])


class EarlierMean:
    """A surrogate of the difference to a weighted sum of earlier studies; implements ``Surrogate``.

    The prior mean is an intercept plus non-negative multiples of the predictions of the earlier
    studies. They are fitted to the trials by least squares on standardised predictions, with some
    imaginary trials that the studies predict fairly well. So a multiple is a (partial) correlation,
    the *weight* of a study. From ten trials on, a study whose weight is not significant has none,
    and the multiples fade as the inverse square of the number of trials.

    Parameters
    ----------
    surrogate : Surrogate
        An empty surrogate, which learns the residuals.
    earlier : sequence of EarlierModel
        K models of earlier studies.

    Attributes
    ----------
    weights : float64 array of shape (K,)
        The present weights, before they fade; 0 for a study that is forgotten.
    """

    def __init__(self, surrogate: Surrogate, earlier: Sequence[EarlierModel]) -> None:
        self._surrogate = surrogate
        self._earlier = earlier
        self._targets, self._predicted = GrowingArray(), GrowingArray(len(earlier))
        self.weights = np.full(len(earlier), _FIRST_WEIGHT / len(earlier))
        self._slopes = self.weights.copy()
        self._intercept, self._unit = 0.0, 1.0

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; in pickles of earlier versions the targets have another name."""
        self.__dict__.update(state)
        if "_values" in state:
            self._targets = self.__dict__.pop("_values")

    def learn(
        self, rows: FloatArray, targets: FloatArray, known_noise: FloatArray | None = None
    ) -> None:
        """Learn more rows; only :class:`SmoothEarlierMean` takes known noise."""
        predicted = np.column_stack([model.means(rows) for model in self._earlier])
        is_first = len(self._targets) == 0
        self._targets.extend(targets)
        self._predicted.extend(predicted)
        if is_first:
            self._weigh()
        residuals = self._residuals(targets, predicted)
        if known_noise is None:
            self._surrogate.learn(rows, residuals)
        else:
            assert isinstance(self._surrogate, WeighingSurrogate)
            self._surrogate.learn(rows, residuals, known_noise / self._unit**2)

    def set_targets(self, targets: FloatArray, known_noise: FloatArray | None = None) -> None:
        """Replace the targets of all rows, and weigh the earlier studies again."""
        self._targets.replace(targets.copy())
        self._weigh()
        residuals = self._residuals(targets, self._predicted.rows)
        if known_noise is None:
            self._surrogate.set_targets(residuals)
        else:
            assert isinstance(self._surrogate, WeighingSurrogate)
            self._surrogate.set_targets(residuals, known_noise / self._unit**2)

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of the components, both of shape (C, m)."""
        return self._moved(rows, *self._surrogate.predict(rows))

    def draw(self, rng: np.random.Generator) -> RandomFunction:
        """Draw a function from the posterior."""
        residual = self._surrogate.draw(rng)
        return lambda rows: self._mean(rows) + self._unit * residual(rows)

    @contextmanager
    def extended(self, rows: FloatArray, targets: FloatArray) -> Iterator[None]:
        """Learn further rows inside a ``with`` block."""
        with self._surrogate.extended(rows, (targets - self._mean(rows)) / self._unit):
            yield

    def _moved(
        self, rows: FloatArray, means: FloatArray, stds: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return means and deviations of targets from those of residuals."""
        return self._mean(rows) + self._unit * means, self._unit * stds

    def _mean(self, rows: FloatArray) -> FloatArray:
        mean = np.full(len(rows), self._intercept)
        for k in np.flatnonzero(self._slopes).tolist():
            mean += self._slopes[k] * self._earlier[k].means(rows)
        return mean

    def _residuals(self, targets: FloatArray, predicted: FloatArray) -> FloatArray:
        return np.asarray((targets - self._intercept - predicted @ self._slopes) / self._unit)

    def _weigh(self) -> None:
        """Fit the weights, and the unit of the residuals, to all trials."""
        targets, predicted = self._targets.rows, self._predicted.rows
        n, n_studies = predicted.shape
        centred = predicted - predicted.mean(axis=0)
        # Predictions of an earlier study have the standard deviation 1 over its own trials.
        spreads = np.sqrt((np.sum(centred**2, axis=0) + _IMAGINARY) / (n + _IMAGINARY))
        inputs = centred / spreads
        imaginary = math.sqrt(_IMAGINARY)
        self.weights, _ = nnls(
            np.vstack([inputs, imaginary * np.eye(n_studies)]),
            np.append(
                targets - targets.mean(), np.full(n_studies, imaginary * _FIRST_WEIGHT / n_studies)
            ),
        )
        if n >= _JUDGED_FROM:
            self.weights[self._scores(inputs, targets) < _SIGNIFICANT] = 0.0
        self._slopes = min(1.0, _TRUSTED / n) ** 2 * self.weights / spreads
        self._intercept = float(np.mean(targets - predicted @ self._slopes))
        self._unit = 1.0
        if self.weights.any():
            residuals = self._residuals(targets, predicted)
            total = float(residuals @ residuals) + _IMAGINARY * _RESIDUAL_VARIANCE
            self._unit = math.sqrt(total / (n + _IMAGINARY))
        else:
            # The model without earlier studies.
            self._intercept = 0.0

    def _scores(self, inputs: FloatArray, targets: FloatArray) -> FloatArray:
        """Return weights in their standard errors, shape (K,), as if trials were independent."""
        sizes = self.weights * inputs.std(axis=0) / max(float(targets.std()), 1e-12)
        return np.asarray(sizes * math.sqrt(len(targets)))


class SmoothEarlierMean(EarlierMean):
    """The same over Gaussian processes, with gradients, joint draws and known noise."""

    weighs_targets = True

    _surrogate: GaussianProcessForestSurrogate

    @property
    def n_components(self) -> int:
        """Number of components of predictions."""
        return self._surrogate.n_components

    def fix_lengthscales(self, like: SmoothEarlierMean, factor: float) -> None:
        """Take the hyper-parameters of another surrogate, and its lengthscales times a factor."""
        self._surrogate.fix_lengthscales(like._surrogate, factor)

    def predict_targets(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of new targets, noise included, both (C, m)."""
        return self._moved(rows, *self._surrogate.predict_targets(rows))

    def draw_at(self, rows: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw functions jointly and return their values at rows, shape (n_draws, m)."""
        draws = self._surrogate.draw_at(rows, n_draws, rng)
        return np.asarray(self._mean(rows) + self._unit * draws)

    def gradients(self, rows: FloatArray) -> Gradients:
        """Return predictions with their gradients."""
        means, stds, mean_gradients, std_gradients = self._surrogate.gradients(rows)
        mean, gradient = np.full(len(rows), self._intercept), np.zeros(rows.shape)
        for k in np.flatnonzero(self._slopes).tolist():
            one, gradients = self._earlier[k].gradients(rows)
            mean += self._slopes[k] * one
            gradient += self._slopes[k] * gradients
        return Gradients(
            mean + self._unit * means,
            self._unit * stds,
            gradient + self._unit * mean_gradients,
            self._unit * std_gradients,
        )

    def _scores(self, inputs: FloatArray, targets: FloatArray) -> FloatArray:
        """Return weights by generalised least squares in their standard errors, shape (K,).

        Targets of trials next to each other are alike. The covariance of the process accounts for
        that, up to the number of trials of one leaf.
        """
        n, n_studies = inputs.shape
        columns = np.column_stack([np.ones(n), inputs, targets])
        decorrelated = self._surrogate.decorrelate(columns)
        degrees_of_freedom = n - 1 - n_studies
        if decorrelated is None or degrees_of_freedom < 1:
            return super()._scores(inputs, targets)
        design, outcome = decorrelated[:, :-1], decorrelated[:, -1]
        inverse = np.linalg.pinv(design.T @ design)
        weights = inverse @ (design.T @ outcome)
        residuals = outcome - design @ weights
        variance = float(residuals @ residuals) / degrees_of_freedom
        errors = np.sqrt(variance * inverse.diagonal())
        return np.asarray(weights[1:] / np.maximum(errors[1:], 1e-12))

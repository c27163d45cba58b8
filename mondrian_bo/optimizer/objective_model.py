"""The model of an outcome: a transform of its values and a surrogate over the trials."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeAlias

import numpy as np
from scipy.optimize import minimize_scalar

from mondrian_bo.acquisitions.base import Acquisition, Prediction, Usage, mixture_moments
from mondrian_bo.acquisitions.feasibility import Score
from mondrian_bo.array_types import FloatArray
from mondrian_bo.optimizer.local_search import Gradients as ScoreGradients
from mondrian_bo.optimizer.local_search import gradient_of, moved_moments
from mondrian_bo.optimizer.trials import Trials
from mondrian_bo.surrogates.base import (
    Gradients,
    JointSurrogate,
    NoisySurrogate,
    RandomFunction,
    SmoothSurrogate,
    Surrogate,
)

_REFIT_GROWTH = 1.1
"""Factor of the number of trials at which the transform is refitted: the cost of all refits is O(1)
per trial."""


_WORST = 100.0
"""Interquartile ranges below the median at which values are clipped: our choice, so that a
diverged trial does not flatten the differences between the others."""

_BEST = 1e24
"""Interquartile ranges above the median at which values are clipped: their 6th powers (`_POWERS`)
stay finite."""

_POWERS = (-4.0, 6.0)
"""Range of the Yeo-Johnson parameter, our choice, around 1, the identity."""

_TINY = float(np.finfo(np.float64).tiny)
"""Smallest normal float64. Variances below it count as 0: their logarithms lose precision."""

_SHRINK = 0.25
"""Factor of all values, a power of two: it is exact and makes all differences finite."""


_MOST_STEPS = 1000
"""Most steps of learning that are repeated one by one after an interruption, our choice: they take
a few seconds."""


_MEMORY = 20.0
"""Number of latest trials in the average, our choice: enough for a stable mean of squares."""

_LARGEST_SCORE = 3.0
"""Cap of standardised errors, our choice: a single outlier does not widen all predictions."""

_SMALLEST_STD = 1e-9
"""Smallest standard deviation, of transformed values, that errors are divided by."""


class Transform(Protocol):
    """A monotone map of the values of an outcome, larger is better, to standardised ones."""

    def __call__(self, values: FloatArray, /) -> FloatArray:
        """Return the transformed values, shape (m,)."""
        ...

    def inverse(self, transformed: FloatArray, /) -> FloatArray:
        """Return the values of transformed ones, of any shape."""
        ...


NewTransform: TypeAlias = Callable[[FloatArray], Transform]
"""Fits a transform to values of shape (n,)."""


class ObjectiveModel:
    """A surrogate of trials. It learns new trials at the next prediction or draw.

    Parameters
    ----------
    new_surrogate : callable
        Returns an empty surrogate, the same at every call.
    trials : Trials
        The trials. More may be added later.
    new_transform : callable or None, default=None
        Fits a :class:`Transform` to values of shape (n,); None is :class:`OutcomeTransform`.

    Attributes
    ----------
    trials : Trials
        As given.
    steps : list of int
        Numbers of trials after each step of learning, in ascending order. An empty model learns in
        the steps of another one, and then has the same random draws.
    """

    def __init__(
        self,
        new_surrogate: Callable[[], Surrogate],
        trials: Trials,
        new_transform: NewTransform | None = None,
    ) -> None:
        self.trials = trials
        self._new_surrogate = new_surrogate
        self._new_transform = OutcomeTransform if new_transform is None else new_transform
        self.steps: list[int] = []
        self.forget()

    def forget(self) -> None:
        """Return to an empty surrogate. It learns all trials again when it is needed next.

        It learns them in the same steps, and so becomes the same model. After more than a thousand
        steps it learns the former trials at once: it then is a model of the same trials with other
        random draws.
        """
        self._surrogate = surrogate = self._new_surrogate()
        # An isinstance check of a protocol takes as long as a small prediction.
        self._smooth = surrogate if isinstance(surrogate, SmoothSurrogate) else None
        self._n_learnt = 0
        self._n_fitted = 0
        self._transform = self._new_transform(np.zeros(1))
        self._calibration = VarianceCalibration()
        # An undone call may have learnt trials that are not there any more.
        del self.steps[bisect.bisect_right(self.steps, len(self.trials)) :]
        if len(self.steps) > _MOST_STEPS:
            self.steps = self.steps[-1:]

    @property
    def models(self) -> tuple[ObjectiveModel]:
        """The model itself, as the models of several objectives have several."""
        return (self,)

    @property
    def transform(self) -> Transform:
        """The present transform of values."""
        self._learn()
        return self._transform

    @property
    def n_gradients(self) -> int:
        """Number of components of predictions with gradients; 0 if there are none."""
        self._learn()
        return 0 if self._smooth is None else self._smooth.n_components

    def predict(self, rows: FloatArray, calibrated: bool = True) -> Prediction:
        """Predict transformed values at rows of shape (m, d).

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Where to predict.
        calibrated : bool, default=True
            Whether standard deviations are multiplied by the root mean square of the latest
            standardised errors.
        """
        self._learn()
        means, stds = self._surrogate.predict(rows)
        return Prediction(means, (self._calibration.scale if calibrated else 1.0) * stds)

    def predict_values(self, rows: FloatArray) -> Prediction:
        """Predict transformed values of new trials: with their noise if the surrogate knows it."""
        self._learn()
        if isinstance(self._surrogate, NoisySurrogate):
            return Prediction(*self._surrogate.predict_values(rows))
        return self.predict(rows)

    def gradients(self, rows: FloatArray, calibrated: bool = True) -> Gradients:
        """Predict as `predict` does, with gradients; the surrogate must be smooth."""
        self._learn()
        assert self._smooth is not None
        means, stds, mean_gradients, std_gradients = self._smooth.gradients(rows)
        scale = self._calibration.scale if calibrated else 1.0
        return Gradients(means, scale * stds, mean_gradients, scale * std_gradients)

    def mixed_gradients(
        self, rows: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return mean and deviation of the mixtures, shape (m,), and their derivatives, (m, d)."""
        means, stds, mean_gradients, std_gradients = self.gradients(rows)
        if len(means) == 1:
            return means[0], stds[0], mean_gradients[0], std_gradients[0]
        mean, std = mixture_moments(Prediction(means, stds))
        # The mixture's variance is the average of stds**2 + (means - mean)**2.
        slopes = stds[:, :, None] * std_gradients + (means - mean)[:, :, None] * mean_gradients
        return (
            mean,
            std,
            mean_gradients.mean(axis=0),
            slopes.mean(axis=0) / np.maximum(std, _TINY)[:, None],
        )

    def score(
        self, acquisition: Acquisition, rng: np.random.Generator
    ) -> tuple[Score, ScoreGradients | None]:
        """Return the score of candidates and, where the model has them, its gradients.

        Parameters
        ----------
        acquisition : Acquisition
            Scores predictions.
        rng : numpy.random.Generator
            Source of the draw, for an acquisition that samples a function.
        """
        usage: Usage = getattr(acquisition, "usage", Usage())
        if usage.samples_function:
            return self.draw(rng), None
        incumbent = self.value_to_beat()
        calibrated = usage.uses_calibrated_variances

        def score(rows: FloatArray) -> FloatArray:
            return acquisition(self.predict(rows, calibrated), incumbent)

        def gradients(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
            means, stds, mean_gradients, std_gradients = self.gradients(rows, calibrated)
            scores = acquisition(Prediction(*moved_moments(means, stds)), incumbent)
            return scores[: len(rows)], gradient_of(scores, stds, mean_gradients, std_gradients)

        return score, gradients if self.n_gradients > 0 else None

    def draw(self, rng: np.random.Generator) -> RandomFunction:
        """Draw a function from the surrogate's posterior."""
        self._learn()
        return self._surrogate.draw(rng)

    def draw_at(self, rows: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw functions and return their transformed values at rows, shape (n_draws, m).

        Deviations from the mean are calibrated, as those of `predict`.
        """
        self._learn()
        if isinstance(self._surrogate, JointSurrogate):
            draws = self._surrogate.draw_at(rows, n_draws, rng)
        else:
            draws = np.array([self._surrogate.draw(rng)(rows) for _ in range(n_draws)])
        mean, _ = mixture_moments(Prediction(*self._surrogate.predict(rows)))
        return np.asarray(mean + self._calibration.scale * (draws - mean))

    def value_to_beat(self) -> float:
        """Return the largest predicted mean among the best feasible trials; -inf without any.

        Without noise this is the best transformed value. With noise a single lucky trial does not
        set it.
        """
        rows = self.trials.incumbents(feasible=True)
        if not len(rows):
            return -math.inf
        mean, _ = mixture_moments(self.predict(rows))
        return float(mean.max())

    def outcome_moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation in the units of the values, both of shape (m,)."""
        mean, std = mixture_moments(self.predict(rows))
        nodes, weights = np.polynomial.hermite_e.hermegauss(31)
        values = self._transform.inverse(mean[:, None] + std[:, None] * nodes)
        weights = weights / weights.sum()
        # With halves and relative deviations neither differences nor squares overflow.
        halves = 0.5 * values
        expected = halves @ weights
        deviations = halves - expected[:, None]
        size = np.maximum(np.abs(deviations).max(axis=1), np.finfo(np.float64).tiny)
        spread = size * np.sqrt((deviations / size[:, None]) ** 2 @ weights)
        largest = 0.5 * np.finfo(np.float64).max
        return 2.0 * np.clip(expected, -largest, largest), 2.0 * np.minimum(spread, largest)

    @contextmanager
    def pending(self, rows: FloatArray, rng: np.random.Generator) -> Iterator[None]:
        """Impute running trials with the values of a drawn function inside a ``with`` block.

        Each suggestion of a batch draws anew, so that the batch does not rest on one guess of what
        its first members will find.
        """
        if len(rows) == 0:
            yield
            return
        with self._surrogate.extended(rows, self.draw(rng)(rows)):
            yield

    def _learn(self) -> None:
        n_trials = len(self.trials)
        if self._n_learnt == n_trials:
            return
        # After `forget` the former steps come first.
        steps = self.steps[bisect.bisect_right(self.steps, self._n_learnt) :]
        is_new = not steps or steps[-1] < n_trials
        for step in [*steps, n_trials] if is_new else steps:
            rows = self.trials.rows[self._n_learnt : step]
            all_values = self.trials.values[:step]
            first = self._n_learnt == 0
            refit = step >= _REFIT_GROWTH * self._n_fitted
            if refit and first:
                self._transform = self._new_transform(all_values)
            values = self._transform(all_values[self._n_learnt :])
            if not first:
                predicted = mixture_moments(Prediction(*self._surrogate.predict(rows)))
                self._calibration.update(values, *predicted)
            self._surrogate.learn(rows, values)
            self._n_learnt = step
            if refit and not first:
                self._transform = self._new_transform(all_values)
                self._surrogate.set_values(self._transform(all_values))
            if refit:
                self._n_fitted = step
        if is_new:
            self.steps.append(n_trials)


def mixed_moments(
    moments: Sequence[tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of equally weighted mixtures, both of shape (m,).

    Parameters
    ----------
    moments : sequence of (mean, std), at least one
        Means and standard deviations of the components, float64 arrays of shape (m,), finite. A
        single component is returned unchanged.
    """
    if len(moments) == 1:
        return moments[0]
    # With shares and relative deviations neither sums nor squares overflow.
    shares = np.array(moments) / len(moments)
    mean = shares[:, 0].sum(axis=0)
    deviations = np.hypot(shares[:, 1], shares[:, 0] - mean / len(moments))
    size = np.maximum(deviations.max(axis=0), np.finfo(np.float64).tiny)
    spread = size * np.sqrt(((deviations / size) ** 2).mean(axis=0))
    return mean, np.minimum(spread, np.finfo(np.float64).max / len(moments)) * len(moments)


# The calibration of standard deviations -----------------------------------------------------------


class VarianceCalibration:
    """The root mean square of the latest standardised errors of one-step-ahead predictions.

    Attributes
    ----------
    scale : float
        Factor of predicted standard deviations: above 1 if recent errors were larger than
        predicted, below 1 if they were smaller, and 1 before any prediction.
    """

    def __init__(self) -> None:
        self.scale = 1.0
        self._squared_scores, self._weight = 1.0, 1.0

    def update(self, values: FloatArray, means: FloatArray, stds: FloatArray) -> None:
        """Compare new values with their predictions, all arrays of shape (m,)."""
        scores = np.minimum(
            np.abs(values - means) / np.maximum(stds, _SMALLEST_STD), _LARGEST_SCORE
        )
        for score in scores[stds > 0.0]:
            forget = 1.0 - 1.0 / _MEMORY
            self._squared_scores = forget * self._squared_scores + float(score) ** 2
            self._weight = forget * self._weight + 1.0
        self.scale = math.sqrt(self._squared_scores / self._weight)


# The transform of values: robust, power-transformed, standardised ---------------------------------


class OutcomeTransform:
    """A monotone map of objective values to a scale that a surrogate models well.

    Infinities become the best or worst finite value. If all finite values are equal, infinities
    count as better or worse than them. Very bad outliers are clipped. A Yeo-Johnson power
    transform, fitted by maximum likelihood, makes the values nearly Gaussian. They are then
    standardised to mean 0 and standard deviation 1. A constant objective is 0.

    Parameters
    ----------
    values : float64 array of shape (n,)
        Values to fit to, n >= 1; larger is better. Infinities are allowed, NaN is not.
    power : bool, default=True
        Whether to apply the power transform.
    """

    def __init__(self, values: FloatArray, power: bool = True) -> None:
        finite = values[np.isfinite(values)] * _SHRINK
        if len(finite) == 0:
            finite = np.zeros(1)
        lower, self._centre, upper = (float(q) for q in np.percentile(finite, (25.0, 50.0, 75.0)))
        self._spread = upper - lower if upper > lower else float(np.ptp(finite))
        # Scaled values are interquartile ranges from the median, here and below.
        self._worst, self._best = 0.0, 0.0
        self._power = 1.0
        self._mean, self._std = 0.0, 1.0
        if self._spread > 0.0:
            with np.errstate(over="ignore"):
                ends = (np.array([finite.min(), finite.max()]) - self._centre) / self._spread
            self._worst, self._best = max(float(ends[0]), -_WORST), min(float(ends[1]), _BEST)
        elif (values != values[0]).any():
            # All finite values are equal; infinities are worse or better than them.
            self._spread = 1.0
            self._worst = -1.0 if values.min() == -np.inf else 0.0
            self._best = 1.0 if values.max() == np.inf else 0.0
        if self._spread > 0.0:
            scaled = self._scaled(values)
            if power:
                self._power = _most_likely_power(scaled)
            powered = _yeo_johnson(scaled, self._power)
            self._mean, self._std = float(powered.mean()), float(powered.std())

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return transformed values; a value better than all fitted ones is not clipped to them."""
        if self._spread == 0.0 or self._std == 0.0:
            return np.zeros(len(values))
        powered = _yeo_johnson(self._scaled(values), self._power)
        return np.asarray((powered - self._mean) / self._std)

    def inverse(self, transformed: FloatArray) -> FloatArray:
        """Return the objective values of transformed ones; clipped values come back as the bound.

        Results are clipped to the range of the fitted values, extended by its width on both sides,
        because the inverse of the power goes to infinity.
        """
        if self._spread == 0.0 or self._std == 0.0:
            return np.full(np.shape(transformed), self._centre / _SHRINK)
        scaled = _inverse_yeojohnson(transformed * self._std + self._mean, self._power)
        width = self._best - self._worst
        scaled = np.clip(scaled, self._worst - width, self._best + width)
        with np.errstate(over="ignore"):
            values = (self._centre + self._spread * scaled) / _SHRINK
        largest = np.finfo(np.float64).max
        return np.asarray(np.clip(values, -largest, largest))

    def _scaled(self, values: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            scaled = (values * _SHRINK - self._centre) / self._spread
        scaled = np.where(np.isposinf(values), self._best, scaled)
        return np.asarray(np.clip(scaled, self._worst, _BEST))


def _most_likely_power(scaled: FloatArray) -> float:
    # The logarithm of the Jacobian is linear in the power.
    log_jacobian = float(np.sum(np.sign(scaled) * np.log1p(np.abs(scaled))))

    def loss(power: float) -> float:
        variance = float(np.var(_yeo_johnson(scaled, power)))
        # A power that makes all values equal has an infinite likelihood, as in scipy.
        log_variance = math.log(variance) if variance >= _TINY else -math.inf
        return 0.5 * len(scaled) * log_variance - (power - 1.0) * log_jacobian

    result = minimize_scalar(loss, bounds=_POWERS, method="bounded")
    return float(result.x) if np.isfinite(result.fun) else 1.0


def _yeo_johnson(values: FloatArray, power: float) -> FloatArray:
    """Transform values as `scipy.stats.yeojohnson` does, whose import takes most of a second.

    References
    ----------
    Yeo and Johnson (2000), A new family of power transformations, equation (2.1).
    """
    epsilon = np.finfo(np.float64).eps
    transformed = np.empty(len(values))
    positive = values >= 0.0
    logs = np.log1p(values[positive])
    transformed[positive] = logs if abs(power) < epsilon else np.expm1(power * logs) / power
    logs = np.log1p(-values[~positive])
    rest = 2.0 - power
    transformed[~positive] = -logs if abs(rest) <= epsilon else -np.expm1(rest * logs) / rest
    return transformed


def _inverse_yeojohnson(powered: FloatArray, power: float) -> FloatArray:
    """Invert the transform; values beyond the transform's range count as its limit."""
    positive = powered >= 0.0
    size = np.abs(powered)
    exponent = np.where(positive, power, 2.0 - power)
    with np.errstate(all="ignore"):
        base = np.maximum(1.0 + exponent * size, np.finfo(np.float64).tiny)
        grown = np.where(
            np.abs(exponent) < 1e-12, np.expm1(size), np.power(base, 1.0 / exponent) - 1.0
        )
    return np.where(positive, grown, -grown)

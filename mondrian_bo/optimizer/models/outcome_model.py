"""The model of an outcome: a transform of its values and a surrogate over the trials."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

import numpy as np

from mondrian_bo.acquisitions.base import (
    Acquisition,
    Prediction,
    Score,
    ScoreGradients,
    checked,
    mixture_moments,
    usage_of,
)
from mondrian_bo.acquisitions.score_gradients import gradient_of, moved_moments
from mondrian_bo.optimizer.models.fine_scale import ScaleChoice
from mondrian_bo.optimizer.models.outcome_transform import OutcomeTransform
from mondrian_bo.optimizer.models.predictability import Judgement, Predictability
from mondrian_bo.optimizer.models.variance_calibration import VarianceCalibration
from mondrian_bo.optimizer.shared.trials import Trials
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.shared.float_range import TINY
from mondrian_bo.surrogates.base import (
    ComparingSurrogate,
    Gradients,
    JointSurrogate,
    NoisySurrogate,
    RandomFunction,
    SmoothSurrogate,
    Surrogate,
    WeighingSurrogate,
)

_MOST_REPEATED = 1000
"""Largest number of former calls of learning that are repeated after an interruption, our choice:
they take a few seconds."""

REFIT_GROWTH = 1.1
"""Factor of the number of trials at which what depends on all of them is computed anew: all of this
costs O(1) per trial."""

_LARGEST_LOG_ERROR = math.log(1e3)
"""Logarithm of the largest standard error in deviations of the values, our choice: such a trial
counts for nothing, and matrices stay accurate."""

_N_NODES = 31
"""Nodes of the Gauss-Hermite rule for moments of inverse-transformed predictions: our choice."""


class Transform(Protocol):
    """A monotone map of the values of an outcome, larger is better, to standardised ones."""

    def __call__(self, values: FloatArray, /) -> FloatArray:
        """Return the transformed values, shape (m,)."""
        ...

    def log_slopes(self, values: FloatArray, /) -> FloatArray:
        """Return the logarithms of the derivatives at values, shape (m,)."""
        ...

    def inverse(self, transformed: FloatArray, /) -> FloatArray:
        """Return the values of transformed ones, of any shape."""
        ...


NewSurrogate: TypeAlias = Callable[[], Surrogate]
"""Returns an empty surrogate, the same at every call."""

NewTransform: TypeAlias = Callable[[FloatArray], Transform]
"""Fits a transform to values of shape (n,)."""


class OutcomeModel:
    """A surrogate of trials. It learns new trials at `learn`, or at the next prediction.

    Its targets are the transformed values. Where known standard errors of the values differ, and
    the surrogate takes a noise of each target, they are the values as observed on a linear scale,
    with the errors as noise.

    Parameters
    ----------
    new_surrogate : callable
        Returns an empty surrogate, the same at every call.
    trials : Trials
        The trials. More may be added later.
    new_transform : callable or None, default=None
        Fits a :class:`Transform` to values of shape (n,); None is :class:`OutcomeTransform`.
    chooses_scale : bool, default=False
        Whether a :class:`ScaleChoice` may replace the transform by a finer one.

    Attributes
    ----------
    trials, new_surrogate, new_transform, chooses_scale
        As given.
    learnt_at : list of int
        Numbers of trials at which the model has learnt, in ascending order. An empty model with the
        list of another one learns at the same numbers, and then has the same random draws.
    """

    def __init__(
        self,
        new_surrogate: NewSurrogate,
        trials: Trials,
        new_transform: NewTransform | None = None,
        chooses_scale: bool = False,
    ) -> None:
        self.trials = trials
        self.chooses_scale = chooses_scale
        self.new_surrogate = new_surrogate
        self.new_transform = OutcomeTransform if new_transform is None else new_transform
        self.learnt_at: list[int] = []
        self.forget()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; pickles of earlier versions lack what is added here."""
        added = {"_predictability": Predictability(), "_uses_errors": False}
        self.__dict__.update({**added, **state})

    def forget(self) -> None:
        """Return to an empty surrogate. It learns all trials again when it is needed next.

        It learns at the same numbers of trials, and so becomes the same model. After more than a
        thousand of them it learns the former trials at once: it then is a model of the same trials
        with other random draws.
        """
        self._surrogate = surrogate = self.new_surrogate()
        # An isinstance check of a protocol takes as long as a small prediction.
        self._smooth = surrogate if isinstance(surrogate, SmoothSurrogate) else None
        self._n_learnt = 0
        self._uses_errors = False
        self._n_fitted = 0
        self._transform = self.new_transform(np.zeros(1))
        self._scale = ScaleChoice() if self.chooses_scale else None
        self._calibration = VarianceCalibration()
        self._predictability = Predictability()
        # An undone call may have learnt trials that are not there any more.
        del self.learnt_at[bisect.bisect_right(self.learnt_at, len(self.trials)) :]
        if len(self.learnt_at) > _MOST_REPEATED:
            self.learnt_at = self.learnt_at[-1:]

    @property
    def models(self) -> tuple[OutcomeModel]:
        """The model itself, as the models of several objectives have several."""
        return (self,)

    def learn(self) -> None:
        """Learn the trials told since the last call."""
        n_trials = len(self.trials)
        if self._n_learnt == n_trials:
            return
        if self.trials.errors_differ and not self._uses_errors and self.weighs_errors:
            if self._n_learnt:
                # The values that it has learnt so far are others.
                self.forget()
            self._uses_errors = True
        # After `forget` the model learns at the former numbers of trials first.
        former = self.learnt_at[bisect.bisect_right(self.learnt_at, self._n_learnt) :]
        is_new = not former or former[-1] < n_trials
        for n_told in [*former, n_trials] if is_new else former:
            rows = self.trials.rows[self._n_learnt : n_told]
            all_values, new_transform = self.trials.values[:n_told], self.new_transform
            if self._uses_errors:
                all_values, _ = self.trials.observed(0, n_told)
                new_transform = self._weighing_transform
            first = self._n_learnt == 0
            refit = n_told >= REFIT_GROWTH * self._n_fitted
            if refit and first:
                self._transform = new_transform(all_values)
            targets = self._transform(all_values[self._n_learnt :])
            noise = self._noise(self._n_learnt, n_told) if self._uses_errors else None
            if not first:
                mean, std = mixture_moments(Prediction(*self._surrogate.predict(rows)))
                if noise is not None:
                    std = np.sqrt(std * std + noise)
                self._calibration.update(targets, mean, std)
            if noise is None:
                self._surrogate.learn(rows, targets)
            else:
                self._weighing.learn(rows, targets, noise)
            self._n_learnt = n_told
            if refit:
                transform = self._transform if first else new_transform(all_values)
                if noise is None:
                    transform = self._rescaled(transform, self.trials.rows[:n_told], all_values)
                if transform is not self._transform:
                    self._transform = transform
                    targets = transform(all_values)
                    if noise is None:
                        self._surrogate.set_targets(targets)
                    else:
                        self._weighing.set_targets(targets, self._noise(0, n_told))
                self._n_fitted = n_told
        if is_new:
            self.learnt_at.append(n_trials)

    @property
    def weighs_errors(self) -> bool:
        """Whether each trial has its own known noise in the model."""
        return self.trials.errors_differ and isinstance(self._surrogate, WeighingSurrogate)

    def _weighing_transform(self, values: FloatArray) -> Transform:
        """Fit a transform to values with known errors, without a power: noise stays Gaussian."""
        transform = self.new_transform(values)
        if isinstance(transform, OutcomeTransform) and not transform.is_linear:
            return OutcomeTransform(values, power=False)
        return transform

    def _noise(self, start: int, end: int) -> FloatArray:
        """Return the variances of the noise of some trials' targets, shape (end - start,)."""
        values, errors = self.trials.observed(start, end)
        with np.errstate(divide="ignore"):
            logs = np.log(errors) + self._transform.log_slopes(values)
        return np.asarray(np.exp(2.0 * np.minimum(logs, _LARGEST_LOG_ERROR)))

    @property
    def _weighing(self) -> WeighingSurrogate:
        """The surrogate, which weighs targets."""
        assert isinstance(self._surrogate, WeighingSurrogate)
        return self._surrogate

    @property
    def transform(self) -> Transform:
        """The present transform of values."""
        self.learn()
        return self._transform

    @property
    def surrogate(self) -> Surrogate:
        """The surrogate, which has learnt all trials."""
        self.learn()
        return self._surrogate

    @property
    def calibration(self) -> float:
        """The factor of predicted standard deviations, from the latest errors."""
        self.learn()
        return self._calibration.scale

    def widen(self, factor: float) -> None:
        """Multiply calibrated standard deviations by a factor, until more trials are learnt."""
        self.learn()
        self._calibration.scale *= factor

    @property
    def n_smooth_components(self) -> int:
        """Number of components of predictions with gradients; 0 without gradients."""
        self.learn()
        return 0 if self._smooth is None else self._smooth.n_components

    @property
    def judgement(self) -> Judgement:
        """What the values count as, see :class:`Predictability`."""
        self.learn()
        return self._predictability.judge(self.trials, self._surrogate)

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
        self.learn()
        means, stds = self._surrogate.predict(rows)
        return Prediction(means, (self._calibration.scale if calibrated else 1.0) * stds)

    def predict_targets(self, rows: FloatArray) -> Prediction:
        """Predict the targets of new trials: with their noise if the surrogate knows it."""
        self.learn()
        if isinstance(self._surrogate, NoisySurrogate):
            return Prediction(*self._surrogate.predict_targets(rows))
        return self.predict(rows)

    def noise(self, rows: FloatArray) -> FloatArray:
        """Return standard deviations of the noise of targets, shape (m,).

        They are 0 if the surrogate does not know the noise.
        """
        if not isinstance(self._surrogate, NoisySurrogate):
            return np.zeros(len(rows))
        _, noisy = mixture_moments(self.predict_targets(rows))
        _, std = mixture_moments(self.predict(rows, calibrated=False))
        return np.asarray(np.sqrt((noisy**2 - std**2).clip(0.0)))

    def gradients(self, rows: FloatArray, calibrated: bool = True) -> Gradients:
        """Predict as `predict` does, with gradients; the surrogate must be smooth."""
        self.learn()
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
        # The mixture's variance is the average of stds**2 + (means - mean)**2. Its gradient is
        # halved, as that of its root has the factor 1/2.
        halves = stds[:, :, None] * std_gradients + (means - mean)[:, :, None] * mean_gradients
        return (
            mean,
            std,
            mean_gradients.mean(axis=0),
            halves.mean(axis=0) / np.maximum(std, TINY)[:, None],
        )

    def score(
        self,
        acquisition: Acquisition,
        rng: np.random.Generator,
        rivals: FloatArray | None = None,
    ) -> tuple[Score, ScoreGradients | None]:
        """Return the score of candidates and, where the model has them, its gradients.

        Parameters
        ----------
        acquisition : Acquisition
            Scores predictions.
        rng : numpy.random.Generator
            Source of the draw, for an acquisition that samples a function.
        rivals : float64 array of shape (k, d) or None, default=None
            Points whose largest predicted mean is the value to beat, k >= 1; None is the best
            eligible trials.
        """
        usage = usage_of(acquisition)
        if usage.samples_function:
            return self.draw(rng), None
        self.learn()
        incumbent = self.value_to_beat() if rivals is None else self._largest_mean(rivals)
        acquisition = checked(acquisition)
        surrogate, smooth = self._surrogate, self._smooth
        scale = self._calibration.scale if usage.uses_calibrated_variances else 1.0

        def score(rows: FloatArray) -> FloatArray:
            means, stds = surrogate.predict(rows)
            return acquisition(Prediction(means, scale * stds), incumbent)

        if smooth is None or smooth.n_components == 0:
            return score, None

        def gradients(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
            means, stds, mean_gradients, std_gradients = smooth.gradients(rows)
            scores = acquisition(Prediction(*moved_moments(means, stds, scale)), incumbent)
            by_rows = gradient_of(scores, stds, mean_gradients, std_gradients, scale)
            return scores[: len(rows)], by_rows

        return score, gradients

    def draw(self, rng: np.random.Generator) -> RandomFunction:
        """Draw a function from the surrogate's posterior."""
        self.learn()
        return self._surrogate.draw(rng)

    def draw_at(self, rows: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw functions and return their transformed values at rows, shape (n_draws, m).

        Deviations from the mean are calibrated, as those of `predict`.
        """
        self.learn()
        if isinstance(self._surrogate, JointSurrogate):
            draws = self._surrogate.draw_at(rows, n_draws, rng)
        else:
            draws = np.array([self._surrogate.draw(rng)(rows) for _ in range(n_draws)])
        mean, _ = mixture_moments(Prediction(*self._surrogate.predict(rows)))
        return np.asarray(mean + self._calibration.scale * (draws - mean))

    def value_to_beat(self) -> float:
        """Return the largest predicted mean among the best eligible trials; -inf without any.

        Without noise this is the best transformed value. With noise a single lucky trial does not
        set it.
        """
        rows = self.trials.best_rows(eligible=True)
        if not len(rows):
            return -math.inf
        self.learn()
        return self._largest_mean(rows)

    def _largest_mean(self, rows: FloatArray) -> float:
        mean, _ = mixture_moments(Prediction(*self._surrogate.predict(rows)))
        return float(mean.max())

    def outcome_moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation in the units of the values, both of shape (m,).

        The mixture is approximated by one Gaussian with its moments, which the inverse transform
        maps by quadrature.
        """
        mean, std = mixture_moments(self.predict(rows))
        nodes, weights = np.polynomial.hermite_e.hermegauss(_N_NODES)
        values = self._transform.inverse(mean[:, None] + std[:, None] * nodes)
        weights = weights / weights.sum()
        # With halves and relative deviations neither differences nor squares overflow.
        halves = 0.5 * values
        expected = halves @ weights
        deviations = halves - expected[:, None]
        size = np.maximum(np.abs(deviations).max(axis=1), TINY)
        std = size * np.sqrt((deviations / size[:, None]) ** 2 @ weights)
        largest = 0.5 * np.finfo(np.float64).max
        return 2.0 * np.clip(expected, -largest, largest), 2.0 * np.minimum(std, largest)

    @contextmanager
    def imputing(self, rows: FloatArray, rng: np.random.Generator) -> Iterator[None]:
        """Impute running trials with the values of a drawn function inside a ``with`` block.

        Each suggestion of a batch draws anew, so that the batch does not rest on one guess of what
        its first members will find.
        """
        if len(rows) == 0:
            yield
            return
        with self._surrogate.extended(rows, self.draw(rng)(rows)):
            yield

    def _rescaled(self, usual: Transform, rows: FloatArray, values: FloatArray) -> Transform:
        """Return the usual transform of the values, or a finer one where that is better."""
        scale, surrogate = self._scale, self._surrogate
        if scale is None or not isinstance(usual, OutcomeTransform):
            return usual
        if not isinstance(surrogate, ComparingSurrogate):
            return usual
        return scale.fine_transform(rows, values, usual, surrogate) or usual

"""Learning curves: what a trial will end with, and whether it is worth going on."""

from __future__ import annotations

import bisect
import math
import sys
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from mondrian_bo.optimizer.learning_curves.curve_regression import (
    Curve,
    LocalRegression,
    StudentPrediction,
)
from mondrian_bo.optimizer.models.outcome_transform import OutcomeTransform
from mondrian_bo.shared.array_types import FloatArray

_MOST_CURVES = 128
"""Number of latest finished curves that the model knows: bounds the time of a call. Our choice."""

_MOST_POSITIONS = 64
"""Number of positions at which trials are judged, at most: bounds the time of a calibration."""

_GROWTH = 1.1
"""The model is fitted again when the curves have grown by this factor: O(1) each on average."""

_FEWEST_CURVES = 3
"""Smallest number of curves that a prediction is made from; our choice."""

_MOST_LONGER = 2.0
"""Number of reports, in medians of the curves, up to which all reports of a curve are fitted to;
our choice: a very long curve, which is mostly flat, would otherwise be most of the reports."""

_STEEPEST = 4.0
"""Largest slope of outcomes over reports by which worse reports are extrapolated, our choice: few
curves determine it badly."""


class CurveSettings(NamedTuple):
    """When trials are stopped.

    Attributes
    ----------
    threshold : float
        A trial is stopped if its probability to end among the best is below this threshold times
        the share of the training that remains.
    alpha : float
        Largest share of the better finished trials that would have been stopped.
    n_best : int
        How many trials are the best.
    n_startup_trials : int
        Number of finished curves before which no trial is stopped.
    n_warmup_steps : int
        Position before which no trial is stopped.
    """

    threshold: float = 0.1
    alpha: float = 0.1
    n_best: int = 1
    n_startup_trials: int = 3
    n_warmup_steps: int = 1


class _Finished(NamedTuple):
    """A finished trial with reports."""

    curve: Curve
    outcome: float
    is_feasible: bool


class LearningCurves:
    """A model of finished curves, which predicts how others end.

    The outcome of a trial may be its last report, the mean or the best of its reports, or something
    else that goes with them: the model learns it from the finished trials. See
    :class:`LocalRegression`. Values have a power transform that is fitted to all reports and
    outcomes, so that the scale does not matter.

    The threshold is calibrated. For each finished trial i of the better half, let m_i be the
    smallest ratio, over all positions, of the probability that the model of the *other* trials
    gives to an outcome beyond its own, to the share of the training that remains. This trial would
    have been stopped with a threshold above m_i, had the best outcome been as good as its own. The
    calibrated threshold is the largest that would have stopped at most the share `alpha` of these
    trials, and at most `settings.threshold`.

    A threshold on the ratio weighs what a trial may gain against what it still costs. Close to the
    end, a small probability is worth the few steps that are left.

    Parameters
    ----------
    settings : CurveSettings
        When trials are stopped.
    n_latest : int, default=128
        Number of latest finished curves that the model knows, at least three.

    Attributes
    ----------
    n_curves : int
        Number of finished curves told.
    threshold : float
        The calibrated threshold; 0 while there are too few finished curves.

    Raises
    ------
    ValueError
        If `n_latest` is less than three.
    """

    def __init__(
        self,
        settings: CurveSettings = CurveSettings(),  # noqa: B008
        n_latest: int = _MOST_CURVES,
    ) -> None:
        if n_latest < _FEWEST_CURVES:
            raise ValueError(f"`n_latest` must be at least {_FEWEST_CURVES}, got {n_latest!r}.")
        self.settings = settings
        self._n_latest = n_latest
        self.n_curves = 0
        self.threshold = 0.0
        self._best: list[float] = []
        self._latest: list[_Finished] = []
        self._n_fitted = 0
        self._curves: list[Curve] = []
        self._outcomes = np.zeros(0)
        self._raw_outcomes = np.zeros(0)
        self._worst = math.inf
        self._transform: _CurveTransform | None = None
        self._positions: list[float] = []
        # All positions are judged at a calibration, so all regressions are known.
        self._regressions: dict[float, LocalRegression | None] = {}
        self._remaining: dict[float, float] = {}
        self._tolerates_gaps = False

    def tell(
        self,
        outcome: float,
        positions: Iterable[float] = (),
        values: Iterable[float] = (),
        is_feasible: bool = True,
    ) -> None:
        """Learn a finished trial.

        Parameters
        ----------
        outcome : float
            Its outcome; larger is better.
        positions, values : iterables of float
            Its reports, in ascending order of their positions; NaN is worse than all others.
            Without reports, only the outcome counts.
        is_feasible : bool, default=True
            Whether it satisfies the constraints. Others say how trials end, but are not among the
            best, and none of the better half.
        """
        if is_feasible:
            self._best = sorted([*self._best, outcome], reverse=True)[: self.settings.n_best]
        curve = Curve()
        curve.extend(positions, values)
        if curve.values:
            self.n_curves += 1
            finished = _Finished(curve, outcome, is_feasible)
            self._latest = [*self._latest, finished][-self._n_latest :]

    def should_stop(self, curve: Curve, is_exempt: bool = False) -> bool:
        """Whether a running trial is stopped; O(its new reports).

        A trial that reports NaN or the worst infinity is stopped, unless a finished trial of the
        better half has done so, too. Others are not stopped where there is too little to compare
        them with (:meth:`probability`).

        Parameters
        ----------
        curve : Curve
            Its reports so far.
        is_exempt : bool, default=False
            Whether it goes on whatever its probability to end among the best.
        """
        self._fit()
        settings = self.settings
        if self.n_curves < settings.n_startup_trials or len(self._best) < settings.n_best:
            return False
        if not curve.values or curve.positions[-1] < settings.n_warmup_steps:
            return False
        if _is_diverged(curve.values[-1]) and not self._tolerates_gaps:
            return True
        probability = None if is_exempt else self.probability(curve)
        position = self._position_of(curve)
        if probability is None or position is None:
            return False
        return probability < self.threshold * self._remaining[position]

    def probability(self, curve: Curve) -> float | None:
        """Return the probability that a running trial ends among the best.

        None if there is too little to compare it with: fewer than three finished curves that go on
        beyond its position.
        """
        self._fit()
        if len(self._best) < self.settings.n_best or self._transform is None:
            return None
        prediction = self._predict(curve)
        if prediction is None:
            return None
        return float(prediction.probability(self._transform(np.array([self._best[-1]])))[0])

    def predict(self, curve: Curve) -> tuple[float, float] | None:
        """Predict the outcome of a curve: median, and half the width of the central 68 %.

        None if there is too little to compare it with. Finished curves say little of one whose
        latest report is worse than theirs at the same position: half of the difference counts as a
        standard error besides. The part of it that is worse than all values of finished curves,
        which the transform does not tell apart, is subtracted from the median. Both are in units of
        outcomes, by the slope of the outcomes over the reports.
        """
        self._fit()
        prediction = self._predict(curve)
        if prediction is None or self._transform is None:
            return None
        location, scale = float(prediction.location[0]), float(prediction.scale[0])
        low, median, high = self._transform.inverse(location + scale * np.array([-1.0, 0.0, 1.0]))
        deficit, beyond = self._deficits(curve)
        value = max(float(median) - beyond, -sys.float_info.max)
        error = math.hypot(0.5 * float(high) - 0.5 * float(low), 0.5 * deficit)
        return value, min(error, sys.float_info.max)

    def predict_quantiles(self, curve: Curve, levels: FloatArray) -> FloatArray | None:
        """Predict quantiles of the outcome of a curve, shape (q,).

        None if there is too little to compare it with.

        Parameters
        ----------
        curve : Curve
            The reports so far.
        levels : float64 array of shape (q,)
            Probabilities in (0, 1).
        """
        self._fit()
        prediction = self._predict(curve)
        if prediction is None or self._transform is None:
            return None
        # A quantile is exact under a monotone transform.
        return self._transform.inverse(prediction.quantiles(levels)[0])

    def _predict(self, curve: Curve) -> StudentPrediction | None:
        if self._transform is None or not curve.values:
            return None
        curve.set_transform(self._transform)
        position = self._position_of(curve)
        if position is None:
            return None
        n_reports = curve.n_until(position)
        regression = self._regressions[position]
        if regression is None or n_reports == 0:
            return None
        return regression.predict(np.array([curve.features(n_reports)]))

    def _deficits(self, curve: Curve) -> tuple[float, float]:
        """Return how much worse the latest report of a curve is than others, in units of outcomes.

        Returns
        -------
        deficit, beyond : float
            How much worse it is than those of all curves it is compared with, and than all values
            of finished curves; 0 if it is not worse, or not a finite number.
        """
        position = self._position_of(curve)
        if position is None:
            return 0.0, 0.0
        latest = curve.values[curve.n_until(position) - 1]
        pairs = []
        for i in self._known_at(position):
            known, outcome = self._curves[i], float(self._raw_outcomes[i])
            report = known.values[known.n_until(position) - 1]
            if math.isfinite(report) and math.isfinite(outcome):
                pairs.append((report, outcome))
        if not pairs or not math.isfinite(latest):
            return 0.0, 0.0
        reports, outcomes = np.array(pairs).T
        # Reports may have another unit, or say nothing of outcomes.
        factor = min(max(_slope(reports, outcomes), 0.0), _STEEPEST)
        largest = sys.float_info.max
        deficit = min(max(float(reports.min()) - latest, 0.0), largest)
        beyond = min(max(self._worst - latest, 0.0), deficit)
        return min(factor * deficit, largest), min(factor * beyond, largest)

    def _position_of(self, curve: Curve) -> float | None:
        """Return the latest position that calibration knows, which a curve is judged at."""
        n_past = bisect.bisect_right(self._positions, curve.positions[-1])
        return self._positions[n_past - 1] if n_past else None

    def _known_at(self, position: float) -> list[int]:
        """Return the curves that have a report at or before a position, and one beyond."""
        # A trial at its end has nothing to save.
        return [
            i
            for i, curve in enumerate(self._curves)
            if curve.positions[0] <= position < curve.positions[-1]
        ]

    def _regression_of(self, found: list[int], position: float) -> LocalRegression | None:
        if len(found) < _FEWEST_CURVES:
            return None
        curves = [self._curves[i] for i in found]
        features = [curve.features(curve.n_until(position)) for curve in curves]
        return LocalRegression(np.array(features), self._outcomes[found])

    def _fit(self) -> None:
        """Fit transform and threshold, if there are enough new curves."""
        if self.n_curves < _FEWEST_CURVES or (
            self._n_fitted and self.n_curves < _GROWTH * self._n_fitted
        ):
            return
        self._n_fitted = self.n_curves
        self._curves = [one.curve for one in self._latest]
        # Of this moment: the latest curves move on until the next fit.
        self._raw_outcomes = np.array([one.outcome for one in self._latest])
        told = np.concatenate([*_thinned(self._curves), self._raw_outcomes])
        self._worst = float(np.min(told[np.isfinite(told)], initial=math.inf))
        self._transform = _CurveTransform(told)
        for curve in self._curves:
            curve.set_transform(self._transform)
        self._outcomes = self._transform(self._raw_outcomes)
        self._regressions = {}
        self._positions = _judged_positions(self._curves, self.settings.n_warmup_steps)
        feasible = np.flatnonzero([one.is_feasible for one in self._latest])
        order = feasible[np.argsort(-self._outcomes[feasible], kind="stable")]
        better = order[: math.ceil(0.5 * len(order))].tolist()
        self._tolerates_gaps = any(
            _is_diverged(value) for i in better for value in self._curves[i].values
        )
        self.threshold = self._calibrated(better)

    def _calibrated(self, better: list[int]) -> float:
        """Return the largest threshold that stops few enough of the better trials."""
        smallest = np.full(len(self._curves), np.inf)
        self._remaining = {}
        for position in self._positions:
            found = self._known_at(position)
            regression = self._regressions[position] = self._regression_of(found, position)
            if regression is not None:
                probabilities = regression.leave_one_out().probability(self._outcomes[found])
                remaining = self._remaining[position] = self._mean_remaining(found, position)
                smallest[found] = np.minimum(smallest[found], probabilities / remaining)
        if not better:
            return self.settings.threshold
        ranked = np.sort(smallest[better])
        return min(self.settings.threshold, float(ranked[int(self.settings.alpha * len(ranked))]))

    def _mean_remaining(self, found: list[int], position: float) -> float:
        """Return the mean share of the reports of some curves that lie beyond a position."""
        shares = [
            1.0 - curve.n_until(position) / len(curve.values)
            for curve in (self._curves[i] for i in found)
        ]
        return float(np.mean(shares))


def _thinned(curves: list[Curve]) -> list[FloatArray]:
    """Return the reports of each curve, of very long ones as many as others have, evenly spaced."""
    most = int(_MOST_LONGER * float(np.median([len(curve.values) for curve in curves])))
    result = []
    for curve in curves:
        values = np.array(curve.values)
        if len(values) > most:
            values = values[np.linspace(0, len(values) - 1, most).round().astype(int)]
        result.append(values)
    return result


def _judged_positions(curves: list[Curve], first: float) -> list[float]:
    """Return the positions at which trials are judged, ascending, at most 64 of them.

    The last one is the first position beyond which too few curves go on, so that nothing is judged
    there. Positions are denser where more curves are known, in proportion to the square of their
    number: a few very long curves leave enough positions for the others.

    Parameters
    ----------
    curves : list of Curve
        Finished curves, at least three.
    first : float
        The first position to judge at.
    """
    starts = np.sort([curve.positions[0] for curve in curves])
    ends = np.sort([curve.positions[-1] for curve in curves])
    positions = np.unique(np.concatenate([curve.positions for curve in curves]))
    positions = positions[(positions >= first) & (positions <= ends[-_FEWEST_CURVES])]
    if len(positions) > _MOST_POSITIONS:
        n_known = np.searchsorted(starts, positions, "right").astype(float)
        n_known -= np.searchsorted(ends, positions, "right")
        masses = np.cumsum([0.0, *(n_known[:-1] ** 2)])
        evenly = np.linspace(0.0, masses[-1], _MOST_POSITIONS)
        chosen = np.interp(evenly, masses, np.arange(len(positions))).round().astype(int)
        positions = positions[np.unique(chosen)]
    return [float(one) for one in positions]


def _slope(reports: FloatArray, outcomes: FloatArray) -> float:
    """Return the least-squares slope of finite outcomes over finite reports; 1 if these are equal.

    It may be infinite.
    """
    # Powers of two, which are exact, keep sums and squares within the range of float64.
    scale, outcome_scale = (int(np.frexp(np.abs(one).max())[1]) for one in (reports, outcomes))
    reports, outcomes = np.ldexp(reports, -scale), np.ldexp(outcomes, -outcome_scale)
    gaps = reports - reports.mean()
    square = float(gaps @ gaps)
    if square == 0.0:
        return 1.0
    # Both are centred: the mean of the outcomes times the rounding error of the gaps may be large.
    ratio = float(gaps @ (outcomes - outcomes.mean())) / square
    with np.errstate(over="ignore"):
        return float(np.ldexp(ratio, outcome_scale - scale))


class _CurveTransform:
    """The power transform of all reports and outcomes; NaN is worse than all others."""

    def __init__(self, values: FloatArray) -> None:
        self._transform = OutcomeTransform(np.where(np.isnan(values), -np.inf, values))

    def __call__(self, values: FloatArray) -> FloatArray:
        return self._transform(np.where(np.isnan(values), -np.inf, values))

    def inverse(self, values: FloatArray) -> FloatArray:
        return self._transform.inverse(values)


def _is_diverged(value: float) -> bool:
    return math.isnan(value) or value == -math.inf

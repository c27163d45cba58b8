"""How well the values of trials can be predicted from one another.

The values of trials are equal, or noise, where most settings do equally badly: for example because
the model that is trained does not learn. A surrogate that is fitted to noise predicts nothing, and
the maxima of an acquisition are at corners. Values of a rugged function are predicted a little.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mondrian_bo.optimizer.models.outcome_transform import OutcomeTransform
from mondrian_bo.optimizer.shared.trials import Trials
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.base import ComparingSurrogate

_FEWEST = 16
"""Smallest number of trials whose values may count as noise, our choice: fewer trials of a rugged
function are not predicted either, and a search of its best trials gains there."""

_GROWTH = 1.25
"""Factor of the number of trials between two comparisons, our choice."""

_MOST = 200
"""Largest number of trials with a comparison, beyond which values count as predicted, our choice:
it bounds the time."""

_NOISE = 0.3
"""Correlation of values with their predictions below which they count as noise: our choice. That
of noise is rarely larger, and that of functions with few local optima never smaller."""

_RUGGED = 0.5
"""Correlation below which the values of many trials count as rugged: our choice. That of functions
with few local optima is larger."""

_FEWEST_RUGGED = 38
"""Smallest number of trials whose values may count as rugged, our choice: with fewer, a function of
a few peaks is not predicted either. So many trials are compared."""

_CERTAIN = 0.8
"""Correlation from which on later trials are not compared: our choice. It saves time."""


class Judgement(NamedTuple):
    """What values of trials count as.

    Attributes
    ----------
    is_noise : bool
        Whether predictions of left-out values say nothing.
    is_rugged : bool
        Whether they say little, with many trials.
    """

    is_noise: bool
    is_rugged: bool


class Predictability:
    """How closely left-out values of a search's trials follow their predictions.

    The answer depends on the trials alone, not on the moments at which it was asked for: the first
    16, 20, 25, ... trials are compared with their predictions.
    """

    def __init__(self) -> None:
        self._n_compared = 0
        self._correlation = 1.0

    def judge(self, trials: Trials, surrogate: object) -> Judgement:
        """Return what the values of trials count as.

        Parameters
        ----------
        trials : Trials
            The trials, to which more have been added since the last call.
        surrogate : object
            Predicts left-out values, if it is a `ComparingSurrogate`. Otherwise, and with more than
            200 trials, values count as predicted.
        """
        n_trials = len(trials)
        if n_trials > _MOST:
            return Judgement(False, False)
        while self._n_compared == 0 or self._correlation < _CERTAIN:
            n_next = max(int(_GROWTH * self._n_compared), _FEWEST)
            if n_next > n_trials or not isinstance(surrogate, ComparingSurrogate):
                break
            rows, values = trials.rows[:n_next], trials.values[:n_next]
            self._correlation = _correlation_of_left_out(rows, values, surrogate)
            self._n_compared = n_next
        is_rugged = self._correlation < _RUGGED and n_trials >= _FEWEST_RUGGED
        return Judgement(self._correlation < _NOISE, is_rugged)


def _correlation_of_left_out(
    rows: FloatArray, values: FloatArray, surrogate: ComparingSurrogate
) -> float:
    """Return the correlation of transformed values with what the others predict of each.

    It is 0 if the values or the predictions are constant.
    """
    targets = OutcomeTransform(values)(values)
    if targets.std() == 0.0:
        return 0.0
    means, _ = surrogate.left_out(rows, targets)
    product = means.std() * targets.std()
    covariance = float(np.mean((means - means.mean()) * (targets - targets.mean())))
    return covariance / product if product > 0.0 else 0.0

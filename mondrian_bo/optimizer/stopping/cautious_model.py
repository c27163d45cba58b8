"""A model that is less certain of what no trial has shown than the one that suggests.

The trials of a search are close together around its best one. They decide the lengthscales, so that
the model is too certain elsewhere. Two changes make up for that. Lengthscales are shorter. Standard
deviations are multiplied by the *surprise* at the best basin: the distance of the best trial's
value, in standard deviations, from what the trials outside of its basin predict. A basin that could
not be foreseen is a sign that there may be more of them. The model also takes for noise what it
cannot follow. In an objective without noise these differences are structure, such as the many small
basins of Rastrigin's function, and better points may lie in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mondrian_bo.acquisitions.base import mixture_moments
from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.optimizer.shared.trials import Trials
from mondrian_bo.search_space.space import row_gaps
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.base import ScaledSurrogate, Surrogate

_BASIN = 0.1
"""Largest difference of a number between rows in one basin, in sides of the unit cube; our choice.
Different categories differ by 1 or more, and so do rows of which one lacks a parameter."""

_SMALLEST_STD = 1e-9
"""Smallest standard deviation, of transformed values, that a surprise is measured in."""


class Caution(NamedTuple):
    """By how much an estimate of the regret is more careful than the model that suggests.

    The defaults were chosen on development problems, see ``docs/appendix/reading.md``.

    Attributes
    ----------
    lengthscales : float
        Factor of lengthscales, in (0, 1].
    surprise : bool
        Whether deviations are multiplied by the surprise at the best basin.
    branches : bool
        Whether each branch of a conditional space is also judged by its own trials alone.
    structure : bool
        Whether what the model takes for noise is structure of the objective.
    """

    lengthscales: float = 0.4
    surprise: bool = True
    branches: bool = True
    structure: bool = True


CAREFUL = Caution()
"""The caution of :class:`mondrian_bo.MondrianTerminator`."""


def cautious_model(
    model: OutcomeModel, best: FloatArray, caution: Caution = CAREFUL
) -> OutcomeModel:
    """Return a model of the same trials with shorter lengthscales and wider deviations.

    Deviations are never narrower than the surrogate's own: their calibration by recent errors,
    which are those of trials near the best one, can only widen them.

    Parameters
    ----------
    model : OutcomeModel
        The model that suggests.
    best : float64 array of shape (d,)
        The trial with the best predicted mean.
    caution : Caution, default=CAREFUL
        What changes.
    """
    cautious = roughened(model, model.trials, caution.lengthscales)
    cautious.widen(max(model.calibration, 1.0))
    if caution.surprise:
        cautious.widen(surprise(model, best, caution.lengthscales))
    return cautious


def roughened(model: OutcomeModel, trials: Trials, factor: float) -> OutcomeModel:
    """Return a model of some trials with lengthscales times a factor, and all else as in `model`.

    A surrogate without lengthscales is fitted to the trials instead.
    """
    transform = model.transform

    def new_surrogate() -> Surrogate:
        surrogate = model.new_surrogate()
        if isinstance(surrogate, ScaledSurrogate):
            surrogate.fix_lengthscales(model.surrogate, factor)
        return surrogate

    return OutcomeModel(new_surrogate, trials, lambda values: transform)


def surprise(model: OutcomeModel, best: FloatArray, factor: float) -> float:
    """Return by how many deviations the best trial is above what other basins' trials predict.

    At least 1, and 1 if all trials are in one basin. The prediction has lengthscales times
    `factor`. The other parameters are those of :func:`cautious_model`.
    """
    elsewhere = ~np.all(row_gaps(model.trials.rows, best) <= _BASIN, axis=1)
    if not elsewhere.any():
        return 1.0
    others = roughened(model, model.trials.chosen(elsewhere), factor)
    expected, std = mixture_moments(others.predict(best[None]))
    value, _ = mixture_moments(model.predict(best[None]))
    return max(float((value[0] - expected[0]) / max(std[0], _SMALLEST_STD)), 1.0)

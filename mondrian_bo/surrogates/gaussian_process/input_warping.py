"""Logarithmic scales of inputs, where the targets ask for them (input warping, Snoek2014).

A parameter such as a learning rate is often searched on a linear scale, although its effect follows
its logarithm. A stationary process cannot model that: its function varies fast near one end of the
range and hardly elsewhere. Snoek2014 gives each input the distribution function of a beta
distribution, with two parameters that are sampled. Here each input has one of three warps, the
identity and a logarithm from either end, as a choice by evidence needs few fits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mondrian_bo.shared.array_types import BoolArray, FloatArray, IntArray
from mondrian_bo.surrogates.gaussian_process.covariance import Covariance
from mondrian_bo.surrogates.gaussian_process.fit import Estimate, Prior, fit_hyperparameters

_STEEPNESS = math.expm1(7.0)
"""Factor of an input in the logarithm, our choice. The logarithm is exp(7) times as steep at
one end as at the other: three decades."""

_UNSEEN = 2
"""In the place of an end while warps are compared: the process does not see the input."""

_SIZE = math.sqrt(1.0 / 12.0)
"""Factor of the logarithm. Warped uniform inputs then have about the variance of uniform inputs,
1 / 12, as the logarithm of uniform numbers has the variance 1. Otherwise a warp would be a larger
lengthscale that the prior does not see."""

_LEAST_GAIN = 5.0
"""Gain in log evidence that a warp needs, our choice: with it, functions without a logarithmic
scale keep the identity in nearly all runs."""

_FIRST, _LAST, _GROWTH = 8, 100, 1.25
"""Numbers of targets at the first choice, at the last one, and their ratio from one to the next;
our choice."""

_MOST_INPUTS = 8
"""Inputs for which a choice looks for a warp, those of shortest lengthscales; our choice."""

_ITERATIONS = 6
"""Largest number of iterations of the fit for a warp, our choice. It starts at the present one."""

_PRESENT_ITERATIONS = 18
"""The same for the present warps, with which the others are compared; our choice."""


class InputWarping:
    """The warps of the inputs of a process, which are increasing functions.

    Parameters
    ----------
    is_numeric : bool array of shape (d,)
        Which inputs may have one.
    chooses : bool, default=True
        Whether choices become due; otherwise all inputs keep the identity.
    """

    def __init__(self, is_numeric: BoolArray, chooses: bool = True) -> None:
        self._is_numeric = is_numeric
        self._ends = np.zeros(len(is_numeric), dtype=np.int64)
        self._is_active = False
        self._n_left = float(_FIRST) if chooses else math.inf

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; two attributes have no underscore in pickles of earlier versions."""
        for name in ("is_active", "n_left"):
            if name in state:
                state = {f"_{name}": state[name], **state}
                del state[name]
        self.__dict__.update(state)

    @property
    def ends(self) -> IntArray:
        """What the logarithm of each input starts from, shape (d,).

        It is 1 for the lower end, -1 for the upper end and 0 for no logarithm.
        """
        return self._ends.copy()

    @property
    def is_active(self) -> bool:
        """Whether any input has a warp other than the identity."""
        return self._is_active

    @property
    def n_left(self) -> float:
        """Number of further targets until the next choice is due; infinite after the last one."""
        return self._n_left

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return warped inputs, shape (m, d)."""
        return _warped(rows, self._ends)

    def inverse(self, warped: FloatArray) -> FloatArray:
        """Return the inputs of warped ones, shape (m, d)."""
        return _unwarped(warped, self._ends)

    def slopes(self, rows: FloatArray) -> FloatArray:
        """Return the derivatives of warped inputs by the inputs, shape (m, d); NaN has slope 1."""
        result = np.ones_like(rows)
        for j in np.flatnonzero(self._ends):
            distances = np.maximum(_distances(rows[:, j], self._ends[j]), 0.0)
            slopes = _SIZE * _STEEPNESS / (1.0 + _STEEPNESS * distances)
            result[:, j] = np.where(np.isnan(slopes), 1.0, slopes)
        return result

    def fix(self, like: InputWarping) -> None:
        """Take the warps of another object; no choice changes them."""
        self._ends, self._is_active, self._n_left = like.ends, like.is_active, math.inf

    def count(self, n_new: int) -> bool:
        """Count new targets, and return whether a choice is due."""
        self._n_left -= n_new
        return self._n_left <= 0

    def choose(
        self,
        warped: FloatArray,
        targets: FloatArray,
        covariance: Covariance,
        prior: Prior,
        keeps: BoolArray | None = None,
        known_noise: FloatArray | None = None,
    ) -> tuple[FloatArray, Covariance] | None:
        """Choose the warps by the evidence of the targets, one input after the other.

        Parameters
        ----------
        warped : float64 array of shape (n, d)
            All inputs with the present warps.
        targets : float64 array of shape (n,)
            Their targets, of about mean 0 and variance 1.
        covariance : Covariance
            The present hyper-parameters.
        prior : Prior
            Their prior.
        keeps : bool array of shape (d,) or None, default=None
            Which inputs keep their warp; None is none of them.
        known_noise : float64 array of shape (n,) or None, default=None
            Known variances of the noise of each target; None is none.

        Returns
        -------
        tuple of float64 array of shape (n, d) and Covariance, or None
            The inputs with the new warps and the hyper-parameters that fit them; None if no warp
            changes. Takes some 150 evaluations of the evidence of at most 100 targets.
        """
        n = len(targets)
        self._n_left = (_GROWTH - 1.0) * n if n < _LAST else math.inf
        rows = self.inverse(warped)
        part = np.linspace(0, n - 1, min(n, _LAST)).astype(np.int64)
        some, some_targets = rows[part], targets[part]
        some_noise = None if known_noise is None else known_noise[part]

        def fitted(ends: IntArray, start: Covariance, iterations: int) -> Estimate:
            leaf = _warped(some, ends), some_targets, some_noise
            return fit_hyperparameters([leaf], [Estimate(start)], prior, iterations)[0]

        def changed(j: int, end: int) -> tuple[IntArray, Estimate]:
            other = ends.copy()
            other[j] = end
            return other, fitted(other, best.covariance, _ITERATIONS)

        ends, best = self._ends, fitted(self._ends, covariance, _PRESENT_ITERATIONS)
        order = np.argsort(-best.covariance.precisions, kind="stable")
        may_change = self._is_numeric if keeps is None else self._is_numeric & ~keeps
        for j in order[may_change[order]][:_MOST_INPUTS]:
            # The present warp is fitted on, too: more iterations are no reason for another one.
            identity, *warps = (changed(j, end) for end in (0, 1, -1))
            found = min((identity, *warps), key=lambda one: _cost(*one))
            # A warp puts most points close together. That helps where the input has no effect.
            if found is not identity and changed(j, _UNSEEN)[1].loss < found[1].loss:
                found = identity
            ends, best = found
        if np.array_equal(ends, self._ends):
            return None
        self._ends, self._is_active = ends, bool(ends.any())
        return _warped(rows, ends), best.covariance


def _cost(ends: IntArray, estimate: Estimate) -> float:
    """Return what the best warps minimise."""
    return estimate.loss + _LEAST_GAIN * np.count_nonzero(ends)


def _warped(rows: FloatArray, ends: IntArray) -> FloatArray:
    """Return warped inputs. Beyond the end that a logarithm starts from, it goes on as a line."""
    result = rows.copy()
    result[:, ends == _UNSEEN] = 0.0
    for j in np.flatnonzero(np.abs(ends) == 1):
        scaled = _STEEPNESS * _distances(rows[:, j], ends[j])
        values = _SIZE * (np.log1p(np.maximum(scaled, 0.0)) + np.minimum(scaled, 0.0))
        result[:, j] = _distances(values, ends[j])
    return result


def _unwarped(warped: FloatArray, ends: IntArray) -> FloatArray:
    """Return the inputs of warped ones."""
    result = warped.copy()
    for j in np.flatnonzero(ends):
        scaled = _distances(warped[:, j], ends[j]) / _SIZE
        inputs = (np.expm1(np.maximum(scaled, 0.0)) + np.minimum(scaled, 0.0)) / _STEEPNESS
        result[:, j] = _distances(inputs, ends[j])
    return result


def _distances(column: FloatArray, end: int) -> FloatArray:
    """Return the distances from the lower end (1) or the upper end (-1), or what has them."""
    return column if end > 0 else 1.0 - column

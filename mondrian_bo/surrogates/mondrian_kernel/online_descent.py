"""Stochastic gradient descent on the cells of samples that arrive one after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.surrogates.mondrian_kernel.descent_step import take_step


class OnlineSettings(NamedTuple):
    """Settings of online gradient descent.

    Attributes
    ----------
    loss : int
        Value of ``LOSSES``.
    prior_variance : float
        C: the objective is ``C sum(losses) + |w|^2 / 2``.
    epsilon : float
        Errors up to this one are free, for the epsilon-insensitive loss.
    rate : float
        Length of each step.
    """

    loss: int
    prior_variance: float
    epsilon: float
    rate: float


def online_settings(
    loss: int, prior_variance: float, epsilon: float, first_step: float
) -> OnlineSettings:
    """Return settings whose steps are those of a path with a first step of length eta_0.

    After n samples the regularisation of a mean loss is ``alpha = 1 / (C n)``, and the step
    ``eta_0 / (1 + eta_0 alpha n)`` of a path (Balog2016, section 4.2.2) is constant.
    """
    rate = first_step / (1.0 + first_step / prior_variance)
    return OnlineSettings(loss, prior_variance, epsilon, rate)


def remaining_share(n_new: int, n_before: int, settings: OnlineSettings) -> float:
    """Return the share of weights that the regularisation leaves in steps at new samples."""
    samples = n_before + 1.0 + np.arange(n_new)
    return float(np.prod(1.0 - settings.rate / (settings.prior_variance * samples)))


@njit(cache=True, nogil=True)
def descend_online(  # type: ignore[no-untyped-def]
    vectors, cells, targets, n_before, scale, settings
):
    """Take a step at each new sample, with each model, O(M) a step; return the new scale.

    Parameters
    ----------
    vectors : float64 array of shape (K, n_cells)
        v, where ``scale * v`` are the weights of the cells in each model; changed.
    cells : int32 array of shape (m, M)
        The cells of the new samples.
    targets : float64 array of shape (K, m)
        Their targets in each model.
    n_before : int
        Number of samples before.
    scale : float
        A common factor of the weights, as all of them shrink in each step.
    settings : OnlineSettings
        The loss and the steps.
    """
    n_models, n_new = targets.shape
    rate = settings.rate
    after = scale
    for k in range(n_models):
        after = scale
        for i in range(n_new):
            decay = rate / (settings.prior_variance * (n_before + i + 1.0))
            after = take_step(vectors[k], after, cells, i, targets[k, i], settings, rate, decay)
    return after

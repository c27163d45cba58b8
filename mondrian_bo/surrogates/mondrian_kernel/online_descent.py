"""Stochastic gradient descent on the cells of samples that arrive one after the other."""

from __future__ import annotations

from typing import NamedTuple

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
    first_step : float
        Length of the first step, eta_0.
    """

    loss: int
    prior_variance: float
    epsilon: float
    first_step: float


@njit(cache=True, nogil=True)
def descend_online(weights, cells, targets, n_before, settings):  # type: ignore[no-untyped-def]
    """Take a step at each new sample, with each model, O(M) a step.

    After n samples the regularisation of a mean loss is ``alpha = 1 / (C n)``, and the step
    ``eta_0 / (1 + eta_0 alpha n)`` of a path (Balog2016, section 4.2.2) is constant.

    Parameters
    ----------
    weights : float64 array of shape (K, n_cells)
        Weights of the cells in each model; changed.
    cells : int32 array of shape (m, M)
        The cells of the new samples.
    targets : float64 array of shape (K, m)
        Their targets in each model.
    n_before : int
        Number of samples before.
    settings : OnlineSettings
        The loss and the steps.
    """
    n_models, n_new = targets.shape
    rate = settings.first_step / (1.0 + settings.first_step / settings.prior_variance)
    for k in range(n_models):
        vector = weights[k]
        scale = 1.0  # a common factor of the weights, as all of them shrink in each step
        for i in range(n_new):
            decay = rate / (settings.prior_variance * (n_before + i + 1.0))
            scale = take_step(vector, scale, cells, i, targets[k, i], settings, rate, decay)
        for c in range(len(vector)):
            vector[c] *= scale

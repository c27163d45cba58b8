"""The exact Laplace kernel."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import (
    Hyperparameter,
    Kernel,
    NormalizedKernelMixin,
    StationaryKernelMixin,
)

from mondrian_bo.shared.array_types import FloatArray


class LaplaceKernel(StationaryKernelMixin, NormalizedKernelMixin, Kernel):
    """The Laplace kernel ``exp(-sum_d lifetime_d |x_d - x'_d|)``.

    See Balog2016, section 3; Balog2016thesis, def. 5.1.

    A kernel for scikit-learn's Gaussian processes, with the gradient for fitting its lifetimes.
    scikit-learn's ``Matern(nu=0.5)`` uses Euclidean distances instead.

    Parameters
    ----------
    lifetime : float or array-like of shape (n_features,), default=1.0
        Inverse width: one for all features, or one for each.
    lifetime_bounds : pair of floats, "fixed", or array-like of pairs, default=(1e-5, 1e5)
        Range in which Gaussian processes fit the lifetime; "fixed" keeps it.

    Examples
    --------
    >>> from mondrian_bo.surrogates import LaplaceKernel
    >>> LaplaceKernel(2.0)([[0.0, 0.0]], [[0.5, 0.5]]).round(4)
    array([[0.1353]])
    """

    def __init__(
        self,
        lifetime: float | ArrayLike = 1.0,
        lifetime_bounds: tuple[float, float] | Literal["fixed"] | ArrayLike = (1e-5, 1e5),
    ) -> None:
        self.lifetime = lifetime
        self.lifetime_bounds = lifetime_bounds

    @property
    def hyperparameter_lifetime(self) -> Hyperparameter:
        """Name, type and bounds of the lifetime."""
        n_values = np.size(self.lifetime)
        return Hyperparameter("lifetime", "numeric", self.lifetime_bounds, n_values)

    @overload
    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: Literal[False] = False
    ) -> FloatArray: ...

    @overload
    def __call__(
        self, X: ArrayLike, Y: None = None, *, eval_gradient: Literal[True]
    ) -> tuple[FloatArray, FloatArray]: ...

    @overload
    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None, eval_gradient: bool
    ) -> FloatArray | tuple[FloatArray, FloatArray]: ...

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Return the kernel between all rows of X and of Y, O(d) for each pair.

        Parameters
        ----------
        X : array-like of shape (n_X, n_features)
            Inputs.
        Y : array-like of shape (n_Y, n_features) or None, default=None
            Inputs; None is X.
        eval_gradient : bool, default=False
            Whether to return the gradient too; only if Y is None.

        Returns
        -------
        kernel : ndarray of shape (n_X, n_Y)
            Values of the kernel.
        gradient : ndarray of shape (n_X, n_X, n_lifetimes)
            Derivatives with respect to the logarithms of lifetimes; only with `eval_gradient`.

        Raises
        ------
        ValueError
            If a lifetime is not a finite number from 0 on, if their number is neither 1 nor that of
            the features, if X and Y have different numbers of features, or if `eval_gradient` is
            given with Y.
        """
        if eval_gradient and Y is not None:
            raise ValueError("the gradient can only be evaluated when Y is None")
        left = np.atleast_2d(np.asarray(X, dtype=np.float64))
        right = left if Y is None else np.atleast_2d(np.asarray(Y, dtype=np.float64))
        if left.shape[1] != right.shape[1]:
            raise ValueError(
                f"X and Y must have the same features, got {left.shape[1]} and {right.shape[1]}"
            )
        lifetimes = np.atleast_1d(np.asarray(self.lifetime, dtype=np.float64))
        if not np.all(np.isfinite(lifetimes) & (lifetimes >= 0.0)):
            raise ValueError(f"lifetime must hold finite numbers from 0 on, got {self._given()!r}")
        if len(lifetimes) not in (1, left.shape[1]):
            raise ValueError(
                f"lifetime must be one number or one for each of {left.shape[1]} features, "
                f"got {len(lifetimes)}"
            )
        distance = np.zeros((len(left), len(right)))
        parts = np.zeros((len(lifetimes), len(left), len(right))) if eval_gradient else None
        for d in range(left.shape[1]):
            factor = lifetimes[d % len(lifetimes)]
            with np.errstate(over="ignore"):
                gap = factor * np.abs(left[:, None, d] - right[None, :, d])
                distance += gap
            if parts is not None:
                parts[d % len(lifetimes)] += gap
        kernel: FloatArray = np.exp(-distance)  # definition 5.1
        if parts is None:
            return kernel
        if self.hyperparameter_lifetime.fixed:
            return kernel, np.empty((len(left), len(left), 0))
        # Where the kernel is 0 a distance may be infinite, and the derivative is 0.
        parts[:, kernel == 0.0] = 0.0
        return kernel, -np.moveaxis(parts, 0, -1) * kernel[:, :, None]

    def __repr__(self) -> str:
        return f"LaplaceKernel(lifetime={self._given()!r})"

    def _given(self) -> Any:
        """Return the parameter `lifetime` as Python's numbers."""
        return np.asarray(self.lifetime).tolist()

"""Gaussian-process regression with a random partition kernel (Davies2014, sections 3.3 and 5.1)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.estimators.validation import check_squares, unchanged_by_failure
from mondrian_bo.surrogates.partition_kernels.fast_cluster_kernel import FastClusterKernel
from mondrian_bo.surrogates.partition_kernels.linear_system import ShiftedSystem
from mondrian_bo.surrogates.partition_kernels.operator import Labels, PartitionGram
from mondrian_bo.surrogates.partition_kernels.spectrum import (
    Spectrum,
    cluster_spectrum,
    exact_spectrum,
    lanczos_spectrum,
)

DENSE_LIMIT = 2000
"""Number of points up to which ``solver="auto"`` works with dense matrices, and of clusters up to
which a matrix-free likelihood is exact."""

_LOWEST_RATIO, _HIGHEST_RATIO = 1e-6, 1e4
_CHUNK_ENTRIES = 1 << 23


class PartitionGaussianProcessRegressor(RegressorMixin, BaseEstimator):
    """Gaussian-process regression whose covariance is a random partition kernel.

    Labels are ``mean(y) + f(x) + noise`` with ``cov(f(a), f(b)) = signal_variance k(a, b)``. With
    ``solver="cg"`` the Gram matrix is never formed: the posterior comes from preconditioned
    conjugate gradients at O(m N) an iteration (Davies2014, equations 8 to 10).

    Parameters
    ----------
    kernel : PartitionKernel or None, default=None
        An unfitted kernel, of which a copy is fitted to X and y; None is
        :class:`FastClusterKernel`. A fitted one in a :class:`sklearn.frozen.FrozenEstimator` is
        used as it is: it may know inputs without labels.
    signal_variance : float or None, default=None
        Prior variance of f. None maximises the marginal likelihood.
    noise_variance : float or None, default=None
        Variance of the noise. None maximises the marginal likelihood.
    solver : {"auto", "cg", "dense"}, default="auto"
        "cg" is matrix-free, "dense" forms the Gram matrix and factorises it, O(N^3), and "auto"
        takes the latter up to 2000 samples.
    preconditioned : bool, default=True
        Whether conjugate gradients use the preconditioner of equations 9 and 10.
    tol : float, default=1e-10
        Relative residual at which conjugate gradients stop.
    max_iter : int, default=1000
        Iterations at most for a right-hand side.
    n_probes : int, default=10
        Random vectors for the log-determinant in the matrix-free marginal likelihood.
    n_lanczos : int, default=100
        Lanczos steps from each of them.
    random_state : int, RandomState instance or None, default=None
        Seed of these vectors. The kernel has its own.

    Attributes
    ----------
    kernel_ : PartitionKernel
        The fitted kernel.
    signal_variance_, noise_variance_ : float
        The variances used.
    log_marginal_likelihood_ : float
        Log density of the training labels. With "cg" it is exact as long as the partitions have
        2000 clusters at most in all, at O(C^3) for C of them; beyond, its log-determinant is an
        estimate by stochastic Lanczos quadrature, and its quadratic form one by Lanczos.
    n_iter_ : int
        Iterations of conjugate gradients in `fit`; 1 with a dense solver.
    alpha_ : ndarray of shape (n_samples,)
        Weights of the training points in the posterior mean.
    gram_ : PartitionGram
        The Gram matrix of the training points.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    Predictive means take O(m (N + n)); each predictive variance is a linear system more.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import PartitionGaussianProcessRegressor
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = PartitionGaussianProcessRegressor().fit(X, np.sin(6 * X[:, 0]))
    >>> mean, std = model.predict([[0.5], [0.6]], return_std=True)
    >>> mean.shape, std.shape
    ((2,), (2,))
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "kernel": [HasMethods(["fit", "assign", "gram"]), None],
        "signal_variance": [Interval(Real, 0, None, closed="neither"), None],
        "noise_variance": [Interval(Real, 0, None, closed="neither"), None],
        "solver": [StrOptions({"auto", "cg", "dense"})],
        "preconditioned": ["boolean"],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_probes": [Interval(Integral, 1, None, closed="left")],
        "n_lanczos": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    kernel_: Any
    gram_: PartitionGram
    alpha_: FloatArray
    n_features_in_: int

    def __init__(
        self,
        kernel: BaseEstimator | None = None,
        *,
        signal_variance: float | None = None,
        noise_variance: float | None = None,
        solver: Literal["auto", "cg", "dense"] = "auto",
        preconditioned: bool = True,
        tol: float = 1e-10,
        max_iter: int = 1000,
        n_probes: int = 10,
        n_lanczos: int = 100,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.kernel = kernel
        self.signal_variance = signal_variance
        self.noise_variance = noise_variance
        self.solver = solver
        self.preconditioned = preconditioned
        self.tol = tol
        self.max_iter = max_iter
        self.n_probes = n_probes
        self.n_lanczos = n_lanczos
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the kernel, choose the variances and compute the posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.
        y : array-like of shape (n_samples,)
            Finite labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter, X or y cannot be used; the message names it.
        """
        self._validate_params()
        with unchanged_by_failure(self):
            data, labels = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
            labels = np.asarray(labels, dtype=np.float64)
            check_squares(labels)
            kernel = FastClusterKernel() if self.kernel is None else clone(self.kernel)
            self.kernel_ = kernel.fit(data, labels)
        self.gram_ = self.kernel_.gram(data)
        self._mean = float(labels.mean())
        centred = labels - self._mean
        dense = self.solver == "dense" or (self.solver == "auto" and len(labels) <= DENSE_LIMIT)
        spectrum = self._spectrum(centred, dense)
        self.signal_variance_, self.noise_variance_ = choose_variances(
            spectrum, self.signal_variance, self.noise_variance
        )
        self.log_marginal_likelihood_ = spectrum.log_likelihood(
            self.signal_variance_, self.noise_variance_
        )
        self._system = ShiftedSystem(
            self.gram_,
            self.noise_variance_ / self.signal_variance_,
            dense=dense,
            preconditioned=self.preconditioned,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        self.alpha_ = self._system.solve(centred)
        self.n_iter_ = 1 if dense else max(self._system.n_iterations[0], 1)
        return self

    def predict(
        self, X: ArrayLike, return_std: bool = False, return_cov: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict the mean of labels, and their standard deviations or covariance.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Where to predict.
        return_std : bool, default=False
            Whether to return standard deviations too.
        return_cov : bool, default=False
            Whether to return the joint covariance too; not with `return_std`.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Predictive means.
        spread : ndarray of shape (n_samples,) or (n_samples, n_samples)
            Predictive standard deviations or covariance of labels, noise included.

        Raises
        ------
        ValueError
            If both are asked for.
        sklearn.exceptions.NotFittedError
            If nothing has been learnt.
        """
        if return_std and return_cov:
            raise ValueError("ask for return_std or for return_cov, not for both")
        check_is_fitted(self, "alpha_")
        data = validate_data(self, X, dtype=np.float64, reset=False)
        labels = self.kernel_.assign(data)
        cross = self._cross(labels)
        mean: FloatArray = self._mean + cross.matvec(self.alpha_)
        if return_cov:
            prior = PartitionGram(labels, None, self.gram_.n_clusters).toarray()
            across = cross.toarray()
            shrunk = prior - across @ self._system.solve(np.ascontiguousarray(across.T))
            covariance = self.signal_variance_ * 0.5 * (shrunk + shrunk.T)
            covariance[np.diag_indices_from(covariance)] += self.noise_variance_
            return mean, covariance
        if return_std:
            chunk = max(1, _CHUNK_ENTRIES // len(self.alpha_))
            parts = [
                self._explained(labels[:, start : start + chunk])
                for start in range(0, len(data), chunk)
            ]
            left = np.maximum(1.0 - np.concatenate(parts), 0.0)
            return mean, np.sqrt(self.signal_variance_ * left + self.noise_variance_)
        return mean

    def log_predictive_density(self, X: ArrayLike, y: ArrayLike, joint: bool = True) -> float:
        """Return the log density of new labels under the predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Their labels.
        joint : bool, default=True
            Whether the labels are predicted jointly, with their covariances (Davies2014, section
            5.1), or each on its own.

        Returns
        -------
        float
            The sum over the labels, in nats.
        """
        labels = np.asarray(y, dtype=np.float64)
        if joint:
            mean, covariance = self.predict(X, return_cov=True)
            factor = cholesky(covariance, lower=True)
            error = labels - mean
            quadratic = float(error @ cho_solve((factor, True), error))
            log_determinant = 2.0 * np.sum(np.log(np.diag(factor)))
        else:
            mean, std = self.predict(X, return_std=True)
            quadratic = float(np.sum(((labels - mean) / std) ** 2))
            log_determinant = 2.0 * np.sum(np.log(std))
        return float(-0.5 * (quadratic + log_determinant + len(labels) * np.log(2.0 * np.pi)))

    def _spectrum(self, labels: FloatArray, dense: bool) -> Spectrum:
        if dense:
            return exact_spectrum(self.gram_, labels)
        if self.gram_.n_groups <= DENSE_LIMIT:
            return cluster_spectrum(self.gram_, labels)
        rng = check_random_state(self.random_state)
        return lanczos_spectrum(self.gram_, labels, self.n_probes, self.n_lanczos, rng)

    def _cross(self, labels: Labels) -> PartitionGram:
        return PartitionGram(labels, self.gram_.rows, self.gram_.n_clusters)

    def _explained(self, labels: Labels) -> FloatArray:
        """Return the share of the prior variance that the training points explain."""
        across = self._cross(labels).toarray()
        solved = self._system.solve(np.ascontiguousarray(across.T))
        return np.asarray(np.einsum("ij,ji->i", across, solved))


def choose_variances(
    spectrum: Spectrum, signal: float | None, noise: float | None
) -> tuple[float, float]:
    """Return the variances of signal and noise: those given, the others of maximum likelihood.

    What is searched is the ratio noise / signal, from 1e-6 to 1e4: given it, the best signal
    variance is ``y' (K + ratio I)^-1 y / N``.
    """
    if signal is not None and noise is not None:
        return float(signal), float(noise)

    def variances(log_ratio: float) -> tuple[float, float]:
        ratio = float(np.exp(log_ratio))
        if signal is not None:
            return float(signal), ratio * float(signal)
        if noise is not None:
            return float(noise) / ratio, float(noise)
        best = spectrum.quadratic_form(ratio) / spectrum.n_points
        # Labels that are all the same would leave no variance at all.
        best = max(best, np.finfo(np.float64).tiny ** 0.5)
        return best, ratio * best

    def loss(log_ratio: float) -> float:
        return -spectrum.log_likelihood(*variances(log_ratio))

    # The likelihood may have several maxima: a grid first, then the best of its intervals.
    grid = np.linspace(np.log(_LOWEST_RATIO), np.log(_HIGHEST_RATIO), 61)
    best = int(np.argmin([loss(log_ratio) for log_ratio in grid]))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-6})
    return variances(float(found.x) if found.fun < loss(grid[best]) else float(grid[best]))

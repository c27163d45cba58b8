"""Gaussian-process regression with a random partition kernel (Davies2014, sections 3.3 and 5.1)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.estimators.locks import reads
from mondrian_bo.surrogates.estimators.validation import check_new_targets, check_training_data
from mondrian_bo.surrogates.partition_kernels.base import DENSE_LIMIT, PartitionSolver, Solver
from mondrian_bo.surrogates.partition_kernels.operator import Clusters, PartitionGram
from mondrian_bo.surrogates.partition_kernels.spectrum import (
    Spectrum,
    cluster_spectrum,
    exact_spectrum,
    lanczos_spectrum,
)

_LOWEST_RATIO, _HIGHEST_RATIO = 1e-6, 1e4
"""Range of the ratio of noise and signal variance: from hardly any noise to hardly any signal."""

_LEAST_VARIANCE = float(np.finfo(np.float64).tiny) / _LOWEST_RATIO
"""Least signal variance that maximum likelihood chooses, in squared units of the targets: that of
the noise stays a normal number, down to deviations of 1e-151."""

_CHUNK_ENTRIES = 1 << 23
"""Most entries of a dense matrix between training and new points: 64 MB of float64."""


class PartitionGaussianProcessRegressor(RegressorMixin, PartitionSolver):
    """Gaussian-process regression whose covariance is a random partition kernel.

    Targets are ``mean(y) + f(x) + noise`` with ``cov(f(a), f(b)) = signal_variance k(a, b)``. With
    ``solver="cg"`` the Gram matrix is never formed: preconditioned conjugate gradients compute the
    posterior at O(m N) an iteration (Davies2014, equations 8 to 10).

    Parameters
    ----------
    kernel : PartitionKernel or None, default=None
        An unfitted kernel, of which a copy is fitted to X and y; None is
        :class:`FastClusterKernel`. A fitted one in a :class:`sklearn.frozen.FrozenEstimator` is
        used as it is: it may know inputs without targets.
    signal_variance : float or None, default=None
        Prior variance of f. None maximises the marginal likelihood.
    noise_variance : float or None, default=None
        Variance of the noise. None maximises the marginal likelihood. Below about 1e-14 times the
        signal variance it is lost in rounding, and covariances may not be positive definite.
    solver : {"auto", "cg", "dense"}, default="auto"
        "cg" is matrix-free, "dense" forms the Gram matrix and factorises it, O(N^3), and "auto"
        is "dense" up to 2000 samples.
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
        Seed of these vectors and of the default kernel. A given kernel has its own.

    Attributes
    ----------
    kernel_ : PartitionKernel
        The fitted kernel.
    signal_variance_, noise_variance_ : float
        The variances used.
    log_marginal_likelihood_ : float
        Log density of the training targets. With "cg" it is exact while all partitions together
        have at most 2000 clusters, at O(C^3) for C of them. Beyond, its log-determinant is an
        estimate by stochastic Lanczos quadrature, and its quadratic form one by Lanczos.
    n_iter_ : int
        Iterations of conjugate gradients in `fit`; 1 with a dense solver.
    alpha_ : ndarray of shape (n_samples,)
        Weights of the training points in the posterior mean.
    gram_ : PartitionGram
        The Gram matrix of the training points.

    Notes
    -----
    Predictive means take O(m (N + n)); each predictive variance is a linear system more.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import PartitionGaussianProcessRegressor
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = PartitionGaussianProcessRegressor(random_state=0).fit(X, np.sin(6 * X[:, 0]))
    >>> mean, std = model.predict([[0.5], [0.6]], return_std=True)
    >>> mean.shape, std.shape
    ((2,), (2,))
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **PartitionSolver._parameter_constraints,
        "signal_variance": [Interval(Real, 0, None, closed="neither"), None],
        "noise_variance": [Interval(Real, 0, None, closed="neither"), None],
        "n_probes": [Interval(Integral, 1, None, closed="left")],
        "n_lanczos": [Interval(Integral, 1, None, closed="left")],
    }

    gram_: PartitionGram
    alpha_: FloatArray

    def __init__(
        self,
        kernel: BaseEstimator | None = None,
        *,
        signal_variance: float | None = None,
        noise_variance: float | None = None,
        solver: Solver = "auto",
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

    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[False] = False, return_cov: Literal[False] = False
    ) -> FloatArray: ...

    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[True], return_cov: Literal[False] = False
    ) -> tuple[FloatArray, FloatArray]: ...

    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[False] = False, *, return_cov: Literal[True]
    ) -> tuple[FloatArray, FloatArray]: ...

    @overload
    def predict(
        self, X: ArrayLike, return_std: bool = False, return_cov: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]: ...

    @reads
    def predict(
        self, X: ArrayLike, return_std: bool = False, return_cov: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict the mean of targets, and their standard deviations or covariance.

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
        std_or_cov : ndarray of shape (n_samples,) or (n_samples, n_samples)
            Predictive standard deviations or covariance of targets, noise included.

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
        clusters = self._clusters(X)
        cross = self.gram_.cross(clusters)
        mean: FloatArray = self._mean + cross.matvec(self.alpha_)
        if return_cov:
            prior = PartitionGram(clusters, None, self.gram_.n_clusters).toarray()
            across = cross.toarray()
            shrunk = prior - across @ self._solver.solve(np.ascontiguousarray(across.T))
            covariance = self.signal_variance_ * 0.5 * (shrunk + shrunk.T)
            covariance[np.diag_indices_from(covariance)] += self.noise_variance_
            return mean, covariance
        if return_std:
            chunk = max(1, _CHUNK_ENTRIES // len(self.alpha_))
            parts = [
                self._explained(clusters[:, start : start + chunk])
                for start in range(0, clusters.shape[1], chunk)
            ]
            left = np.maximum(1.0 - np.concatenate(parts), 0.0)
            return mean, np.sqrt(self.signal_variance_ * left + self.noise_variance_)
        return mean

    @reads
    def log_predictive_density(self, X: ArrayLike, y: ArrayLike, joint: bool = True) -> float:
        """Return the log density of new targets under the predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            One target for each row of X.
        joint : bool, default=True
            Whether the targets are predicted jointly, with their covariances (Davies2014, section
            5.1), or each on its own.

        Returns
        -------
        float
            The sum over the targets, in nats.

        Raises
        ------
        ValueError
            If the numbers of inputs and targets differ, or a target is not finite.
        numpy.linalg.LinAlgError
            If the joint covariance is not positive definite in floating point.
        """
        if joint:
            mean, covariance = self.predict(X, return_cov=True)
            targets = check_new_targets(y, len(mean))
            try:
                factor = cholesky(covariance, lower=True)
            except np.linalg.LinAlgError:
                raise np.linalg.LinAlgError(
                    "the covariance of the targets is not positive definite in floating point: "
                    f"the noise variance {self.noise_variance_:g} is too small beside the signal "
                    f"variance {self.signal_variance_:g}"
                ) from None
            error = targets - mean
            quadratic = float(error @ cho_solve((factor, True), error))
            log_determinant = 2.0 * np.sum(np.log(np.diag(factor)))
        else:
            mean, std = self.predict(X, return_std=True)
            targets = check_new_targets(y, len(mean))
            quadratic = float(np.sum(((targets - mean) / std) ** 2))
            log_determinant = 2.0 * np.sum(np.log(std))
        return float(-0.5 * (quadratic + log_determinant + len(targets) * np.log(2.0 * np.pi)))

    def _fit(self, X: ArrayLike, y: ArrayLike) -> None:
        """Fit the kernel, choose the variances and compute the posterior."""
        data, targets = check_training_data(self, X, y)
        self.gram_ = self._fit_kernel(data, targets)
        self._mean = float(targets.mean())
        centred = targets - self._mean
        dense = self._is_dense(len(targets))
        spectrum = self._spectrum(centred, dense)
        self.signal_variance_, self.noise_variance_ = choose_variances(
            spectrum, self.signal_variance, self.noise_variance
        )
        self.log_marginal_likelihood_ = spectrum.log_likelihood(
            self.signal_variance_, self.noise_variance_
        )
        shift = self.noise_variance_ / self.signal_variance_
        self._solver = self._system(self.gram_, shift, dense)
        self.alpha_ = self._solver.solve(centred)
        self.n_iter_ = 1 if dense else max(self._solver.n_iterations[0], 1)

    def _spectrum(self, targets: FloatArray, dense: bool) -> Spectrum:
        if dense:
            return exact_spectrum(self.gram_, targets)
        if self.gram_.n_groups <= DENSE_LIMIT:
            return cluster_spectrum(self.gram_, targets)
        rng = check_random_state(self.random_state)
        return lanczos_spectrum(self.gram_, targets, self.n_probes, self.n_lanczos, rng)

    def _explained(self, clusters: Clusters) -> FloatArray:
        """Return the share of the prior variance that the training points explain."""
        across = self.gram_.cross(clusters).toarray()
        solved = self._solver.solve(np.ascontiguousarray(across.T))
        return np.asarray(np.einsum("ij,ji->i", across, solved))


def choose_variances(
    spectrum: Spectrum, signal: float | None, noise: float | None
) -> tuple[float, float]:
    """Return the variances of signal and noise: those given, and the others of maximum likelihood.

    The ratio noise / signal is searched, from 1e-6 to 1e4. Given the ratio, the best signal
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
        # Equal targets would leave no variance at all.
        best = max(best, _LEAST_VARIANCE)
        return best, ratio * best

    def loss(log_ratio: float) -> float:
        return -spectrum.log_likelihood(*variances(log_ratio))

    # The likelihood may have several maxima: a grid first, then the best of its intervals.
    grid = np.linspace(np.log(_LOWEST_RATIO), np.log(_HIGHEST_RATIO), 61)
    best = int(np.argmin([loss(log_ratio) for log_ratio in grid]))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-6})
    return variances(float(found.x) if found.fun < loss(grid[best]) else float(grid[best]))

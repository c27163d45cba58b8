"""Regression with the Mondrian kernel, averaged over its lifetime (Balog2016, Appendix B)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.estimators.base import UndoesInterruptions
from mondrian_bo.surrogates.estimators.locks import learns
from mondrian_bo.surrogates.estimators.predictive import PredictiveDistributionMixin
from mondrian_bo.surrogates.estimators.validation import (
    check_further_samples,
    check_samples,
    is_empty_batch,
    own_copy,
)
from mondrian_bo.surrogates.mondrian_kernel.base import KernelRegressionWithPaths
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.kernel_path import kernel_path
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path import LifetimePath
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import (
    PathData,
    location_and_variance,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_posterior import (
    Cdf,
    LifetimePosterior,
    lifetime_posterior,
)
from mondrian_bo.surrogates.mondrian_kernel.model import KernelModel
from mondrian_bo.surrogates.shared.mixture import GaussianMixture

_KEPT = "noise_variance", "prior_variance", "normalize_y", "lifetime_cdf", "max_models"
"""Parameters that `partial_fit` has from the last `fit`."""


class MondrianKernelMixtureRegressor(
    PredictiveDistributionMixin, UndoesInterruptions, KernelRegressionWithPaths
):
    """Gaussian-process regression with the Mondrian kernel and a prior over its lifetime.

    The marginal likelihood is computed for all lifetimes up to `max_lifetime`. The predictive
    distribution is the mixture of the models of all lifetimes, weighted by their posterior
    probabilities.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of partitions, M.
    max_lifetime : float, default=10.0
        Largest lifetime, in inverse units of the inputs.
    lifetime_cdf : callable or None, default=None
        Cumulative distribution function of the prior over the lifetime, with its mass on
        [0, max_lifetime]. None is the uniform distribution.
    noise_variance, prior_variance, normalize_y
        See :class:`MondrianKernelRegressor`.
    feature_weights
        See :class:`MondrianFeatures`.
    max_models : int or None, default=50
        Largest number of models, each with a lifetime of its own. Lifetimes between two splits
        share the evidence. If more of these intervals than `max_models` have positive probability,
        the models are at equally spaced quantiles of the posterior. Otherwise every interval has
        one or more, by its probability. None is one for each interval, and up to a hundred more.
    random_state, n_jobs
        See :class:`MondrianFeatures`.

    Attributes
    ----------
    path_ : LifetimePath
        Training error and marginal likelihood at all lifetimes.
    posterior_ : LifetimePosterior
        The posterior over lifetimes.
    models_ : list of KernelModel
        The kept models.
    weights_ : ndarray of shape (n_models,)
        Their weights.

    Notes
    -----
    Fitting costs a path, O(k min(C, n)^2) for k cuts, and O(min(C, n)^3) for each kept model.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import MondrianKernelMixtureRegressor
    >>> model = MondrianKernelMixtureRegressor(max_lifetime=20.0, random_state=0)
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> posterior = model.fit(X, np.sin(6 * X[:, 0])).posterior_
    >>> 0.0 < posterior.quantile(0.05) < posterior.quantile(0.95) < 20.0
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **KernelRegressionWithPaths._parameter_constraints,
        "max_lifetime": [Interval(Real, 0, None, closed="neither")],
        "lifetime_cdf": [callable, None],
        "max_models": [Interval(Integral, 1, None, closed="left"), None],
    }

    _learnt = "models_"

    path_: LifetimePath
    posterior_: LifetimePosterior
    models_: list[KernelModel]
    weights_: FloatArray

    def __init__(
        self,
        n_estimators: int = 50,
        max_lifetime: float = 10.0,
        *,
        lifetime_cdf: Cdf | None = None,
        noise_variance: float = 0.01,
        prior_variance: float = 1.0,
        normalize_y: bool = True,
        feature_weights: ArrayLike | None = None,
        max_models: int | None = 50,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_lifetime = max_lifetime
        self.lifetime_cdf = lifetime_cdf
        self.noise_variance = noise_variance
        self.prior_variance = prior_variance
        self.normalize_y = normalize_y
        self.feature_weights = feature_weights
        self.max_models = max_models
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit_weights(self, data: FloatArray, targets: FloatArray) -> None:
        self._keep_settings(*_KEPT)
        path_data = self._sample_path_data(data, targets, None, None, self.max_lifetime)
        self.__dict__.update(self._follow(path_data))

    @learns
    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn more samples and update the posterior over the lifetime.

        The conditional Mondrian extends the partitions of all lifetimes (Balog2016, section 5), and
        the path gives the evidence of all samples at each lifetime. The result equals a fit from
        scratch on the extended partitions. It costs a path for each call, so large batches are
        cheaper than single samples. Parameters are those of `fit`: `set_params` counts from the
        next `fit` on.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs. A fitted estimator ignores a batch without rows.
        y : array-like of shape (n_samples,)
            Finite targets.

        Returns
        -------
        MondrianKernelMixtureRegressor
            The estimator.

        Raises
        ------
        ValueError
            As `fit`.
        """
        if not hasattr(self, "models_"):
            return self.fit(X, y)
        if is_empty_batch(self, X, y):
            return self
        data, targets = check_further_samples(self, X, y)
        partitions, points = self._partitions, own_copy(data)[None]
        learn = self._learn_more
        self._learn_completely(partitions.n_points, learn, partitions, points, targets)
        return self

    def _learn_more(
        self, partitions: PartitionForest, points: FloatArray, targets: FloatArray
    ) -> dict[str, Any]:
        partitions.extend(points, targets)
        return self._fitted(partitions)

    def _former(self, learnt: list[KernelModel], n_samples: int) -> dict[str, Any]:
        return self._fitted(self._partitions.former(n_samples, self.n_jobs))

    def _fitted(self, partitions: PartitionForest) -> dict[str, Any]:
        """Return the fitted attributes for all targets of the partitions."""
        mean, unit = location_and_variance(partitions.targets, bool(self._setting("normalize_y")))
        return self._follow(PathData(partitions, partitions.targets - mean, np.empty(0), unit))

    def _follow(self, path_data: PathData) -> dict[str, Any]:
        """Return the posterior over the lifetime and its models, as fitted attributes."""
        variances = self._setting("noise_variance"), self._setting("prior_variance")
        noise, prior = path_data.variances(*map(float, variances))
        path = kernel_path(path_data, noise, prior)
        posterior = lifetime_posterior(path, self._setting("lifetime_cdf"))
        lifetimes, weights = posterior.representatives(self._setting("max_models"))
        models = [
            KernelModel(
                path_data.partitions.at_lifetime(lifetime),
                noise / prior,
                prior,
                centred=bool(self._setting("normalize_y")),
            )
            for lifetime in lifetimes.tolist()
        ]
        return {
            "_partitions": path_data.partitions,
            "path_": path,
            "posterior_": posterior,
            "weights_": weights,
            "models_": models,
        }

    def _moments(self, X: ArrayLike, with_variance: bool) -> tuple[FloatArray, FloatArray]:
        means, variances = self._components(X, with_variance)
        mean = self.weights_ @ means
        return mean, self.weights_ @ (variances + np.square(means - mean))

    def _weights(self, X: ArrayLike, tolerance: float) -> csr_matrix:
        points = check_samples(self, X)[None]
        parts = [
            weight * model.equivalent_weights(points, 0.0)
            for weight, model in zip(self.weights_, self.models_, strict=True)
        ]
        total = csr_matrix(sum(parts[1:], start=parts[0]))
        total.data[np.abs(total.data) <= tolerance] = 0.0
        total.eliminate_zeros()
        return total

    def _components(self, X: ArrayLike, with_variance: bool) -> tuple[FloatArray, FloatArray]:
        """Return means and variances of targets under all models, shape (n_models, m)."""
        check_is_fitted(self, "models_")
        points = check_samples(self, X)[None]
        moments = [model.predict_targets(points, with_variance) for model in self.models_]
        return np.stack([m for m, _ in moments]), np.stack([v for _, v in moments])

    def _mixture(self, X: ArrayLike) -> GaussianMixture:
        means, variances = self._components(X, True)
        return GaussianMixture.of_components(means, variances, weights=self.weights_)

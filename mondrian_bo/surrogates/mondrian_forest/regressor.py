"""Mondrian forest regression (Lakshminarayanan2016) with scikit-learn manners."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from mondrian_bo.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.estimators.predictive import PredictiveDistributionMixin
from mondrian_bo.surrogates.estimators.tree_paths import TreePathsMixin
from mondrian_bo.surrogates.estimators.validation import (
    check_bounds,
    check_feature_weights,
    check_labelled_samples,
    check_samples,
    check_squares,
    is_empty_batch,
    own_copy,
    unchanged_by_failure,
)
from mondrian_bo.surrogates.gaussian_process_forest.model import GaussianProcessForestModel
from mondrian_bo.surrogates.mondrian_forest.model import (
    HierarchicalGaussianModel,
    Relevance,
    log_mean_exp,
)
from mondrian_bo.surrogates.shared.mixture import GaussianMixture
from mondrian_bo.trees.tree import Tree


class MondrianForestRegressor(
    PredictiveDistributionMixin, TreePathsMixin, RegressorMixin, BaseEstimator
):
    """Mondrian forest for regression, online, with a predictive distribution.

    Trees are sampled without looking at the labels (Lakshminarayanan2016, Algorithms 1 to 4); the
    labels enter through a hierarchical Gaussian over the nodes of each tree, whose posterior is
    exact and kept up to date in O(log n) per point. Predictions are mixtures of Gaussians
    (Algorithm 5, equations 3 to 5) that return to the prior away from the data.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of trees.
    min_samples_split : int, default=2
        Blocks with fewer samples are not split. The paper uses 10 for regression on large data and
        2 for optimisation. Not with ``leaf="gaussian_process"``, which has `block_size`.
    leaf : {"constant", "gaussian_process"}, default="constant"
        What a leaf says of its labels: that they have one mean, as in the paper, or that they are a
        Gaussian process around it. Then features are scaled by their ranges, lengthscales are
        learnt, processes are smooth or rough as the labels are, equal inputs share as much of the
        noise as they seem to, cuts are drawn at one per lengthscale, and up to `block_size` samples
        the forest is one Gaussian process. Variances are corrected by leave-one-out residuals, see
        :mod:`mondrian_bo.surrogates.gaussian_process_forest.variance_correction`.
    block_size : int, default=500
        Largest number of samples of a leaf with a Gaussian process.
    lifetime : float, default=inf
        Blocks are not split later than this, in the time of data scaled to the unit cube, where a
        block of side lengths e splits at rate sum(e). Not with Gaussian processes.
    posterior : {"exact", "empirical"}, default="exact"
        "exact" propagates the messages of the hierarchical Gaussian. "empirical" predicts each node
        with the mean and variance of its labels, the paper's approximation in section 5.3; not with
        Gaussian processes.
    branch_off : {"bridge", "remaining", "paper"}, default="bridge"
        How to predict where a point branches off the tree. "paper" uses the posterior of the parent
        of the new node (section 3.3). "remaining" adds the prior variance that is still to come
        below it, so that predictions far from the data are the prior. "bridge" adds it to the exact
        posterior of the new node itself, which lies between its parent and the node below; the time
        at which the point branches off is represented by three of its quantiles. Ignored by
        "empirical", and by Gaussian processes, which know how far they are from their data.
    hyperparameters : {"leave_one_out", "paper"}, default="leave_one_out"
        Where gamma_1, gamma_2 and the noise come from: the maximum of the density of each label
        given all others, over the forest's trees together, sought whenever the number of samples
        has doubled, with up to 5000 labels; or the heuristic of Appendix B, which also stands in
        where there is nothing to learn from: fewer than 8 samples, or constant labels. Ignored by
        "empirical", and by Gaussian processes, which learn theirs.
    bounds : array-like of shape (n_features, 2) or None, default=None
        Lower and upper end of each feature for the paper's pre-processing to [0, 1]. None follows
        the range of the data seen so far: then the scale of earlier cuts is that of earlier ranges,
        and online and batch learning agree in distribution once the range has settled. Data may lie
        outside the bounds.
    feature_weights : array-like of shape (n_features,) or None, default=None
        Non-negative factors of the features' split rates; 0 ignores a feature. None is all ones.
        Gaussian processes start from lengthscales in inverse proportion to them.
    feature_relevance : bool or "lengthscales", default=False
        Whether to learn which features deserve cuts, and to draw new cuts accordingly: for data
        with irrelevant features. True learns it from how much cuts have told about the labels;
        `fit` then grows the trees twice. "lengthscales" draws cuts at rates in proportion to the
        inverse lengthscales of a Gaussian process, which is fitted to up to 300 samples. Trees that
        look at labels are not the paper's. Gaussian processes in the leaves have lengthscales of
        their own.
    random_state : int, RandomState instance or None, default=None
        Seed of the trees. Results do not depend on `n_jobs`.
    n_jobs : int or None, default=None
        Number of trees to grow or predict at a time (threads by default, any joblib backend). None
        is 1 unless in a ``joblib.parallel_config`` context. Online updates use one thread, and so
        do Gaussian processes.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the first data had string column names.
    model_ : HierarchicalGaussianModel or GaussianProcessForestModel
        The trees and their messages.

    Notes
    -----
    ``branch_off="paper", hyperparameters="paper"`` is the forest of the paper, whose Appendix B
    says: mu_H and gamma_1 match the mean and variance of the labels, ``gamma_2 = D / (20 log2 N)``
    and the noise is ``gamma_1 / min(2000, 2 N)``.

    Fitting takes O(T d n log n), a new sample O(T d log n), a prediction O(T d log n). Learning the
    hyper-parameters takes O(T n), and at most 40 sweeps over 125,000 leaves, some tenths of a
    second, for any n and T: samples beyond 5000 and trees beyond 25 or more do not take part.

    A first `partial_fit` grows the trees in a batch; later ones insert sample after sample, so that
    the result does not depend on how the stream is divided.

    With Gaussian processes in blocks of at most m samples fitting takes O(T n m^2), a new sample
    O(T m^2) on average beside the cost of keeping it, and a prediction O(T m^2). What is learnt of
    scales and hyper-parameters is refreshed whenever the number of samples has grown by a quarter.

    References
    ----------
    B. Lakshminarayanan, D. M. Roy, Y. W. Teh: Mondrian Forests for Large-Scale Regression when
    Uncertainty Matters, AISTATS 2016 (Lakshminarayanan2016).

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import MondrianForestRegressor
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> forest = MondrianForestRegressor(random_state=0).fit(X, np.sin(6 * X[:, 0]))
    >>> mean, std = forest.predict([[0.5], [3.0]], return_std=True)
    >>> bool(std[0] < std[1])
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "min_samples_split": [Interval(Integral, 2, None, closed="left")],
        "leaf": [StrOptions({"constant", "gaussian_process"})],
        "block_size": [Interval(Integral, 2, None, closed="left")],
        "lifetime": [
            Interval(Real, 0, None, closed="neither"),
            Interval(Real, 0, None, closed="right"),
        ],
        "posterior": [StrOptions({"exact", "empirical"})],
        "branch_off": [StrOptions({"bridge", "remaining", "paper"})],
        "hyperparameters": [StrOptions({"leave_one_out", "paper"})],
        "bounds": ["array-like", None],
        "feature_weights": ["array-like", None],
        "feature_relevance": ["boolean", StrOptions({"lengthscales"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    model_: HierarchicalGaussianModel | GaussianProcessForestModel
    n_features_in_: int

    def __init__(
        self,
        n_estimators: int = 10,
        *,
        min_samples_split: int = 2,
        leaf: Literal["constant", "gaussian_process"] = "constant",
        block_size: int = 500,
        lifetime: float = math.inf,
        posterior: Literal["exact", "empirical"] = "exact",
        branch_off: Literal["bridge", "remaining", "paper"] = "bridge",
        hyperparameters: Literal["leave_one_out", "paper"] = "leave_one_out",
        bounds: ArrayLike | None = None,
        feature_weights: ArrayLike | None = None,
        feature_relevance: Relevance = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_split = min_samples_split
        self.leaf = leaf
        self.block_size = block_size
        self.lifetime = lifetime
        self.posterior = posterior
        self.branch_off = branch_off
        self.hyperparameters = hyperparameters
        self.bounds = bounds
        self.feature_weights = feature_weights
        self.feature_relevance = feature_relevance
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget what was learnt and learn a batch (Algorithms 1 and 2).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs on any scale.
        y : array-like of shape (n_samples,)
            Finite labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter, X or y is not as described.
        """
        self._validate_params()
        with unchanged_by_failure(self):
            data, labels = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
            check_squares(labels)
            model = self._new_model(data.shape[1])
        model.learn(own_copy(data)[None], own_copy(labels), self.n_jobs)
        self.model_ = model
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn more samples, one after the other (Algorithms 3 and 4).

        The first call starts the forest as `fit` does. Invalid input changes nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs. Without rows nothing changes, once something has been learnt.
        y : array-like of shape (n_samples,)
            Finite labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter, X or y is not as described.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y)
        if is_empty_batch(self, X, y):
            return self
        data, labels = check_labelled_samples(self, X, y)
        check_squares(labels)
        self.model_.learn(data[None], labels, self.n_jobs)
        return self

    def _moments(self, X: ArrayLike, with_variance: bool) -> tuple[FloatArray, FloatArray]:
        """Return the moments of the mixture over trees (equations 4 and 5)."""
        points = self._points(X)
        means, variances = self.model_.predict(points, self.n_jobs)
        return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)

    def sample_y(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = 0,
    ) -> FloatArray:
        """Draw labels from the posterior, jointly over the rows of X.

        Each sample is a random function of the posterior of a random tree, with noise.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Where to draw.
        n_samples : int, default=1
            Number of functions.
        random_state : int, RandomState instance or None, default=0
            Seed of the draws.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples)
            Labels.
        """
        points = self._points(X)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))
        draws = [self.model_.draw_labels(rng)(points) for _ in range(n_samples)]
        return np.stack(draws, axis=1)

    def log_marginal_likelihood(self) -> float:
        """Return the log evidence of the learnt labels: the log of its mean over trees.

        Each tree's evidence is exact, a by-product of the messages (Lakshminarayanan2016, section
        3.2), at the current hyper-parameters.
        """
        check_is_fitted(self, "model_")
        return log_mean_exp(self.model_.log_marginal_likelihood())

    def _leaves(self, X: ArrayLike) -> tuple[Tree, IntArray]:
        points = self._points(X)
        forest = self.model_.forest
        return forest.arrays, forest.leaves(points)

    def _mixture(self, X: ArrayLike) -> GaussianMixture:
        points = self._points(X)
        return self.model_.mixture(points)

    def _points(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "model_")
        return check_samples(self, X)[None]

    def _new_model(self, n_features: int) -> HierarchicalGaussianModel | GaussianProcessForestModel:
        entropy = check_random_state(self.random_state).randint(2**31, size=4)
        seed = np.random.SeedSequence([int(word) for word in entropy])
        if self.leaf == "gaussian_process":
            self._check_combination()
            return GaussianProcessForestModel(
                self.n_estimators,
                n_features,
                seed,
                block_size=self.block_size,
                bounds=check_bounds(self.bounds, n_features),
                feature_weights=check_feature_weights(self.feature_weights, n_features),
            )
        return HierarchicalGaussianModel(
            self.n_estimators,
            n_features,
            seed,
            min_samples_split=self.min_samples_split,
            lifetime=float(self.lifetime),
            posterior=self.posterior,
            branch_off=self.branch_off,
            hyperparameters=self.hyperparameters,
            bounds=check_bounds(self.bounds, n_features),
            feature_weights=check_feature_weights(self.feature_weights, n_features),
            feature_relevance=self.feature_relevance,
        )

    def _check_combination(self) -> None:
        """Check that no option is set that leaves with Gaussian processes cannot obey."""
        for name, only in (
            ("posterior", "exact"),
            ("lifetime", math.inf),
            ("min_samples_split", 2),
            ("feature_relevance", False),
        ):
            found = getattr(self, name)
            if found != only:
                raise ValueError(
                    f"leaf='gaussian_process' needs {name}={only!r}, its default; got {found!r}"
                )

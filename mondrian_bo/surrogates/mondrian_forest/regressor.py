"""Mondrian forest regression (Lakshminarayanan2016) as a scikit-learn estimator."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Concatenate, Literal, ParamSpec

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.estimators.equivalent_weights import EquivalentWeightsMixin
from mondrian_bo.surrogates.estimators.validation import check_bounds, check_feature_weights
from mondrian_bo.surrogates.mondrian_forest.base import ForestRegressor
from mondrian_bo.surrogates.mondrian_forest.linear_model import LinearLeafModel
from mondrian_bo.surrogates.mondrian_forest.model import HierarchicalGaussianModel, Relevance
from mondrian_bo.surrogates.shared.ensemble import Ensemble

P = ParamSpec("P")
"""The parameters of a decorated method."""

_LINEAR_RULES = {("exact", "remaining"), ("exact", "paper")}
"""The posterior and the rule of branching off that linear leaves can have."""


def without_former_options(
    init: Callable[Concatenate[MondrianForestRegressor, P], None],
) -> Callable[Concatenate[MondrianForestRegressor, P], None]:
    """Make a constructor name the other estimator if it is called with one of its options.

    These options belong to :class:`GaussianProcessForestRegressor`. The signature stays as it is,
    for scikit-learn and for type checkers.
    """

    @functools.wraps(init)
    def checked(self: MondrianForestRegressor, /, *args: P.args, **options: P.kwargs) -> None:
        former, leaf = None, options.get("leaf")
        if isinstance(leaf, str) and leaf == "gaussian_process":
            former = "leaf='gaussian_process'"
        elif "block_size" in options:
            former = "block_size"
        if former is not None:
            raise TypeError(
                f"MondrianForestRegressor has no option {former}. GaussianProcessForestRegressor "
                "is the forest with Gaussian processes in its leaves."
            )
        init(self, *args, **options)

    return checked


class MondrianForestRegressor(EquivalentWeightsMixin, ForestRegressor):
    """Mondrian forest for regression, online, with a predictive distribution.

    The trees do not depend on the targets (Lakshminarayanan2016, Algorithms 1 to 4). The targets
    follow a hierarchical Gaussian over the nodes of each tree, whose posterior is exact and updated
    in O(log n) per point. Predictions are mixtures of Gaussians (Algorithm 5, equations 3 to 5)
    that return to the prior away from the data.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of trees.
    leaf : {"constant", "linear"}, default="constant"
        The function of a node: a constant, as in the paper, or an affine function of the features,
        whose weights follow the same hierarchy (section 5.4 of the paper suggests it). Outside of
        the data, forests with linear leaves continue the linear trend of the data, with a deviation
        that grows with the distance.
    min_samples_split : int, default=2
        Blocks with fewer samples are not split. The paper uses 10 for regression on large data and
        2 for optimisation.
    lifetime : float, default=inf
        Blocks are not split later than this, in the time of data scaled to the unit cube, where a
        block of side lengths e splits at rate sum(e).
    posterior : {"exact", "empirical"}, default="exact"
        "exact" propagates the messages of the hierarchical Gaussian. "empirical" predicts each node
        with the mean and variance of its targets, plus the noise: the paper's approximation in
        section 5.3. Linear leaves are always exact.
    branch_off : {"remaining", "paper", "bridge"}, default="remaining"
        How to predict where a point branches off before a node j, as if a new node were inserted
        between j and its parent. "paper" uses the posterior of j (Algorithm 5, line 2), "remaining"
        adds the prior variance below j. "bridge" uses the exact posterior of the new node, plus the
        prior variance below it. Three quantiles represent the time at which the point branches off.
        Above the root all three are the prior. "empirical" branches off as "paper". Linear leaves
        have no "bridge".
    hyperparameters : {"leave_one_out", "marginal_likelihood", "paper"}, default="leave_one_out"
        Source of gamma_1, gamma_2 and the noise. "leave_one_out" maximises the density of each
        target given all others, over all trees, whenever the number of samples has doubled, with up
        to 5000 targets; with linear leaves also over the prior deviation of slopes.
        "marginal_likelihood", for constant leaves, maximises the mean log evidence of the trees,
        and also learns the lifetime: where a shorter one than `lifetime` has more evidence, the
        trees are grown anew with it. "paper" is the heuristic of Appendix B, which also applies to
        fewer than 8 samples and to constant targets. Ignored by "empirical".
    weigh_trees : bool, default=False
        Whether the weights of the trees in the mixture are in proportion to their evidence, rather
        than equal. With many samples one tree often has nearly all the weight.
    bounds : array-like of shape (n_features, 2) or None, default=None
        Lower and upper end of each feature for the paper's pre-processing to [0, 1]. None follows
        the range of the data seen so far: `partial_fit` grows the trees anew where the range has
        changed, at every change with up to 64 samples and later whenever their number has grown by
        a quarter. Right after that the trees have the distribution of a batch. In between, splits
        keep the scale of the range at which they were made. Data may lie outside the bounds.
    feature_weights : array-like of shape (n_features,) or None, default=None
        Non-negative factors of the features' split rates; 0 ignores a feature. None is all ones.
    feature_relevance : bool or "lengthscales", default=False
        Whether to learn the split rates of the features: for data with irrelevant features. True
        favours features whose earlier splits reduced the loss; `fit` then grows the trees
        twice. "lengthscales" uses the inverse lengthscales of a Gaussian process, fitted to up to
        300 samples. The paper's trees do not depend on the targets.
    max_nodes : int or None, default=None
        Largest number of nodes of a tree. A tree without room for another split keeps its splits
        and goes on learning ("extend node" of Khannouz2022). The samples are kept nevertheless.
        None is no limit.
    random_state : int, RandomState instance or None, default=None
        Seed of the trees. Results do not depend on `n_jobs`.
    n_jobs : int or None, default=None
        Number of trees to grow or predict at a time (threads by default, any joblib backend). None
        is 1 unless in a ``joblib.parallel_config`` context. Online updates use one thread.

    Attributes
    ----------
    model_ : HierarchicalGaussianModel or LinearLeafModel
        The trees and their messages.

    Notes
    -----
    ``branch_off="paper", hyperparameters="paper"`` is the forest of the paper, whose Appendix B
    says: mu_H and gamma_1 match the mean and variance of the targets, ``gamma_2 = D / (20 log2 N)``
    and the noise is ``gamma_1 / min(2000, 2 N)``.

    All variances are in proportion to the variance of the targets. So after one sample, or while
    all targets are equal, the standard deviation is 0.

    Fitting takes O(T d n log n), a new sample O(T d log n), a prediction O(T d log n). Learning the
    hyper-parameters takes O(T n) and at most 40 sweeps over 125,000 leaves (some tenths of a
    second): at most 5000 samples are used, and with so many samples at most 25 trees.

    With linear leaves a message takes O(d^3), so that fitting takes O(T n (d log n + d^3)) and a
    new sample O(T d^3 log n); memory is O(T n d^2). The hyper-parameters are learnt from as many
    samples as a fixed time allows, at least 300 in 4 trees.

    A first `partial_fit` grows the trees in a batch; later ones insert sample after sample. After
    the same first batch, the result does not depend on how the rest of the stream is divided.
    Growing trees anew where the range of the data grows takes O(T d log n) per sample, on average
    over the stream.

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
        **ForestRegressor._parameter_constraints,
        "min_samples_split": [Interval(Integral, 2, None, closed="left")],
        "lifetime": [
            Interval(Real, 0, None, closed="neither"),
            Interval(Real, 0, None, closed="right"),
        ],
        "leaf": [StrOptions({"constant", "linear"})],
        "posterior": [StrOptions({"exact", "empirical"})],
        "branch_off": [StrOptions({"remaining", "paper", "bridge"})],
        "hyperparameters": [StrOptions({"leave_one_out", "marginal_likelihood", "paper"})],
        "weigh_trees": ["boolean"],
        "max_nodes": [Interval(Integral, 1, None, closed="left"), None],
        "feature_relevance": ["boolean", StrOptions({"lengthscales"})],
    }

    model_: HierarchicalGaussianModel

    @without_former_options
    def __init__(
        self,
        n_estimators: int = 10,
        *,
        leaf: Literal["constant", "linear"] = "constant",
        min_samples_split: int = 2,
        lifetime: float = math.inf,
        posterior: Literal["exact", "empirical"] = "exact",
        branch_off: Literal["remaining", "paper", "bridge"] = "remaining",
        hyperparameters: Literal["leave_one_out", "marginal_likelihood", "paper"] = "leave_one_out",
        weigh_trees: bool = False,
        bounds: ArrayLike | None = None,
        feature_weights: ArrayLike | None = None,
        feature_relevance: Relevance = False,
        max_nodes: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.leaf = leaf
        self.min_samples_split = min_samples_split
        self.lifetime = lifetime
        self.posterior = posterior
        self.branch_off = branch_off
        self.hyperparameters = hyperparameters
        self.weigh_trees = weigh_trees
        self.bounds = bounds
        self.feature_weights = feature_weights
        self.feature_relevance = feature_relevance
        self.max_nodes = max_nodes
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _moments(self, X: ArrayLike, with_variance: bool) -> tuple[FloatArray, FloatArray]:
        check_is_fitted(self, "model_")
        if not self.model_.weighs_trees:
            return super()._moments(X, with_variance)
        points = self._points(X)
        means, variances = self.model_.predict(points, self.n_jobs)
        weights = self.model_.tree_weights
        mean = weights @ means
        return mean, weights @ (variances + np.square(means - mean))

    def _weights(self, X: ArrayLike, tolerance: float) -> csr_matrix:
        return self.model_.weights(self._points(X), tolerance)

    def _model_for(self, n_features: int) -> Callable[[Ensemble], HierarchicalGaussianModel]:
        if self.leaf == "linear" and (self.posterior, self.branch_off) not in _LINEAR_RULES:
            raise ValueError(
                "leaf='linear' needs posterior='exact', and branch_off='remaining' or 'paper'. "
                f"Got posterior={self.posterior!r}, branch_off={self.branch_off!r}."
            )
        if self.leaf == "linear" and self.hyperparameters == "marginal_likelihood":
            raise ValueError("hyperparameters='marginal_likelihood' needs leaf='constant'.")
        kind = LinearLeafModel if self.leaf == "linear" else HierarchicalGaussianModel
        return functools.partial(
            kind,
            min_samples_split=self.min_samples_split,
            lifetime=float(self.lifetime),
            posterior=self.posterior,
            branch_off=self.branch_off,
            hyperparameters=self.hyperparameters,
            weigh_trees=bool(self.weigh_trees),
            bounds=check_bounds(self.bounds, n_features),
            feature_weights=check_feature_weights(self.feature_weights, n_features),
            feature_relevance=self.feature_relevance,
            max_nodes=None if self.max_nodes is None else int(self.max_nodes),
        )

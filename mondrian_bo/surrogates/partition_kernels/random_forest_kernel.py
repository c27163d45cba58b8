"""The Random Forest kernel (Davies2014, Algorithm 1)."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.utils import Tags, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import validate_data

from mondrian_bo.shared.array_types import AnyArray, BoolArray, FloatArray
from mondrian_bo.surrogates.estimators.validation import N_JOBS, check_numeric, check_squares
from mondrian_bo.surrogates.partition_kernels.kernel import PartitionKernel
from mondrian_bo.surrogates.partition_kernels.operator import Clusters
from mondrian_bo.surrogates.partition_kernels.tree_levels import Hierarchy, hierarchies, leaves_of


class RandomForestKernel(PartitionKernel):
    """Random Forest kernel: trees of a forest, each pruned at a random height.

    A tree of the forest and a height d of it, uniform from 0 to the tree's own height, make a
    partition: two points are together if they have the same ancestor at level d (Davies2014,
    Algorithm 1). Leaves above level d stay whole.

    Parameters
    ----------
    n_partitions : int, default=200
        Number of partitions m, and of trees.
    forest : estimator or None, default=None
        The forest whose trees are used: one of scikit-learn's (random forests, extra trees, random
        trees embedding, gradient boosting) or of this library (Mondrian and AMF forests). A copy
        with ``n_estimators=n_partitions`` is fitted. None is a random forest, a regressor for
        targets of a floating point type and a classifier for others.
    height : {"level", "split_time"}, default="level"
        What is drawn uniformly: a level from 0 to the height of the tree, or, for forests of this
        library, one of the times at which the tree splits or time 0. The partition is then the
        Mondrian process at that time, and its number of clusters is uniform.
    max_height : int or None, default=None
        The h of Algorithm 1: levels are drawn from 0 to the smaller of this and the height of the
        tree. None does not limit them.
    random_state : int, RandomState instance or None, default=None
        Seed of the forest and of the heights.
    n_jobs : int or None, default=None
        Number of trees to grow at a time, passed to the forest.

    Attributes
    ----------
    forest_ : estimator
        The fitted forest. A regression forest has learnt standardised targets, of mean 0 and
        variance 1, and predicts such targets.
    n_clusters_ : ndarray of shape (m,)
        Number of clusters of each partition. Forests with several trees per round of boosting have
        as many partitions as trees.

    Notes
    -----
    The kernel is supervised: it depends on the targets it was fitted with. `fit` takes as long as
    that of the forest, and assigning points as long as finding their leaves.

    Partitions do not depend on the unit and the origin of the targets, since a regression forest
    learns standardised ones. Thresholds of a given forest, such as its `min_impurity_decrease`, are
    therefore in units of the variance of the targets. With ``criterion="poisson"``, which needs
    targets of at least 0, they are divided by the largest one instead.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import MondrianForestRegressor, RandomForestKernel
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> kernel = RandomForestKernel(50, random_state=0).fit(X, X[:, 0])
    >>> kernel(X).shape
    (100, 100)
    >>> mondrian = RandomForestKernel(50, forest=MondrianForestRegressor(), height="split_time")
    >>> mondrian.fit(X, X[:, 0]).transform(X).shape[0]
    100
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "n_partitions": [Interval(Integral, 1, None, closed="left")],
        "forest": [HasMethods(["fit"]), None],
        "height": [StrOptions({"level", "split_time"})],
        "max_height": [Interval(Integral, 0, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    }

    forest_: Any
    _clusters: list[NDArray[np.int32]]

    def __init__(
        self,
        n_partitions: int = 200,
        *,
        forest: BaseEstimator | None = None,
        height: Literal["level", "split_time"] = "level",
        max_height: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_partitions = n_partitions
        self.forest = forest
        self.height = height
        self.max_height = max_height
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_training_data(self, X: Any, y: Any) -> tuple[Any, Any]:
        if y is not None:
            data, targets = validate_data(self, X, y, dtype=np.float64)
            if is_regressor(_default_forest(targets) if self.forest is None else self.forest):
                is_poisson = getattr(self.forest, "criterion", None) == "poisson"
                targets = _standardised(targets, is_centred=not is_poisson)
            return data, targets
        if self._needs_targets():
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: "
                "its forest is supervised"
            )
        return validate_data(self, X, dtype=np.float64), None

    def _draw(self, X: FloatArray, y: Any, rng: np.random.RandomState) -> list[int]:
        forest = _default_forest(y) if self.forest is None else clone(self.forest)
        wanted = {
            "n_estimators": self.n_partitions,
            "random_state": rng.randint(2**31 - 1),
            "n_jobs": self.n_jobs,
        }
        if self.n_jobs is None:
            del wanted["n_jobs"]
        known = forest.get_params()
        self.forest_ = forest.set_params(**{k: v for k, v in wanted.items() if k in known})
        self.forest_.fit(X, y)
        trees = hierarchies(self.forest_)
        drawn = [tree.clusters(self._is_split(tree, rng)) for tree in trees]
        self._clusters = [clusters for clusters, _ in drawn]
        return [number for _, number in drawn]

    def _is_split(self, tree: Hierarchy, rng: np.random.RandomState) -> BoolArray:
        """Draw a height; return which nodes split, if they are not leaves, down to it."""
        is_inner = np.isin(np.arange(len(tree.parent)), tree.parent)
        if self.height == "level":
            highest = int(tree.level.max())
            if self.max_height is not None:
                highest = min(highest, self.max_height)
            return np.asarray(is_inner & (tree.level < rng.randint(highest + 1)))
        if tree.split_time is None:
            raise ValueError(
                'height="split_time" needs trees with split times, those of a Mondrian forest; '
                f"got {type(self.forest_).__name__}"
            )
        times = np.concatenate([[0.0], tree.split_time[is_inner]])
        return np.asarray(is_inner & (tree.split_time <= times[rng.randint(len(times))]))

    def _assign(self, X: FloatArray) -> Clusters:
        leaves = leaves_of(self.forest_, X)
        found = np.empty((len(self._clusters), len(X)), dtype=np.int32)
        for row, clusters, leaf in zip(found, self._clusters, leaves.T, strict=True):
            row[:] = clusters[leaf]
        return found

    def _needs_targets(self) -> bool:
        return self.forest is None or bool(get_tags(self.forest).target_tags.required)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._needs_targets()
        return tags


def _default_forest(y: Any) -> Any:
    return RandomForestRegressor() if np.asarray(y).dtype.kind == "f" else RandomForestClassifier()


def _standardised(y: AnyArray, is_centred: bool) -> FloatArray:
    """Return targets of mean 0 and variance 1, or only divided by the largest.

    scikit-learn's trees do not split nodes with a variance below 2e-16, and compute variances as
    differences of mean squares.

    Raises
    ------
    ValueError
        If the targets are not numbers, or their squares overflow.
    """
    check_numeric(y)
    targets = np.asarray(y, dtype=np.float64)
    check_squares(targets)
    if not is_centred:
        largest = np.abs(targets).max()
        return np.asarray(targets / largest) if largest > 0.0 else targets
    extent = np.ptp(targets)
    if extent == 0.0:
        return np.zeros_like(targets)
    # First to [0, 1]: squares of tiny targets would underflow.
    shares = (targets - targets.min()) / extent
    return np.asarray((shares - shares.mean()) / shares.std())

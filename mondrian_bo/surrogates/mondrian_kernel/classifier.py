"""Support vector machines and logistic regression with the Mondrian kernel (Balog2016, 4.2.2)."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.estimators.locks import learns, reads
from mondrian_bo.surrogates.estimators.one_versus_rest import (
    OneVersusRestMixin,
    one_versus_rest,
    several_classes,
)
from mondrian_bo.surrogates.estimators.online_classifier import (
    check_labels,
    check_same_classes,
    class_numbers,
    initial_classes,
)
from mondrian_bo.surrogates.estimators.validation import (
    check_samples,
    is_empty_batch,
    own_copy,
    unchanged_by_failure,
)
from mondrian_bo.surrogates.mondrian_kernel.base import LinearMachine, Samples
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path import LifetimePath
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.sgd_path import sgd_lifetime_path


class MondrianKernelClassifier(OneVersusRestMixin, ClassifierMixin, LinearMachine):
    """Classification with the Mondrian kernel: a support vector machine or logistic regression.

    The weights w of the cells of Mondrian partitions minimise
    ``prior_variance * sum(loss(y f(x))) + |w|^2 / 2``, where f(x) is M^-1/2 times the sum of the
    weights of the M cells that hold x. As M grows, this becomes the classifier with the Laplace
    kernel ``exp(-lifetime * sum_d feature_weights[d] * |x_d - x'_d|)``. Several classes are learnt
    one against the rest.

    Parameters
    ----------
    loss : {"hinge", "log_loss"}, default="hinge"
        Support vector machine, or logistic regression.
    n_estimators, lifetime
        See :class:`MondrianFeatures`.
    prior_variance : float, default=1.0
        Prior variance of f, which is scikit-learn's C; with "log_loss" w is the posterior mode.
    feature_weights
        See :class:`MondrianFeatures`.
    tol : float, default=1e-4
        Tolerance of scikit-learn's solver.
    max_iter : int, default=1000
        Largest number of iterations; the solver gives a
        :class:`~sklearn.exceptions.ConvergenceWarning` if it has not converged by then.
    random_state : int, RandomState instance or None, default=None
        Seed of the partitions and of the solver. Results do not depend on `n_jobs`.
    n_jobs
        See :class:`MondrianFeatures`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    features_ : MondrianFeatures
        The fitted partitions.
    coef_ : ndarray of shape (1 or n_classes, n_cells)
        Weights of the cells. Each access makes a new array.
    n_iter_ : int
        Number of iterations of the solver, the largest one over the classes.

    Notes
    -----
    There is no intercept: the features of a partition add up to a constant. Far from all data f is
    0, its prior mean. The weights are those of :class:`sklearn.svm.LinearSVC` and
    :class:`sklearn.linear_model.LogisticRegression`. An iteration costs O(n M), and a prediction
    O(M d depth).

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import MondrianKernelClassifier
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> y = np.where((X[:, 0] > 0.5) == (X[:, 1] > 0.5), "same", "different")
    >>> model = MondrianKernelClassifier(lifetime=5.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **LinearMachine._parameter_constraints,
        "loss": [StrOptions({"hinge", "log_loss"})],
    }

    _has_numeric_targets = False
    _kept = "loss", "prior_variance"
    _learning_rate = 1.0

    def __init__(
        self,
        loss: Literal["hinge", "log_loss"] = "hinge",
        *,
        n_estimators: int = 50,
        lifetime: float = 1.0,
        prior_variance: float = 1.0,
        feature_weights: ArrayLike | None = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.prior_variance = prior_variance
        self.feature_weights = feature_weights
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _has_probabilities(self) -> bool:
        loss = self._setting("loss")
        if loss != "log_loss":
            raise AttributeError(f"probabilities need loss='log_loss', but the loss is {loss!r}")
        return True

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @reads
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probabilities of the classes; only with ``loss="log_loss"``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            With several classes, the probabilities of each class against the rest, divided by
            their sum.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        values = self._values(X)
        if len(self.classes_) == 2:
            return np.asarray(expit(values * [-1.0, 1.0]))
        against_rest = expit(values)
        return np.asarray(against_rest / against_rest.sum(axis=1, keepdims=True))

    @learns
    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Take a step of stochastic gradient descent at each sample (Balog2016, section 4.2.2).

        The conditional Mondrian extends the partitions, and new cells start with weight 0. The
        first call starts from weights of 0; after `fit` descent goes on from its weights. Steps
        have the same length throughout, so weights are near those of `fit`, not equal to them.
        O(M log M) a sample, after O(M d depth) for its cells. The objective (`loss`,
        `prior_variance`) is that of the first samples or of the last `fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs. A fitted estimator ignores a batch without rows.
        y : array-like of shape (n_samples,)
            Classes.
        classes : array-like of shape (n_classes,) or None, default=None
            All class labels of the stream, at least two. The first call needs them, and None there
            means the labels of `y`. Later calls may repeat them.

        Returns
        -------
        MondrianKernelClassifier
            The estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described, if a label is not among the classes, or
            if `classes` are not those of the first call.
        """
        self._validate_params()
        if hasattr(self, "_cell_weights"):
            check_same_classes(classes, self.classes_)
            if is_empty_batch(self, X, y):
                return self
            data = check_samples(self, X)
            self._step(data, check_labels(y, len(data)))
            return self
        with unchanged_by_failure(self):
            self._keep_settings(*self._kept)
            data, labels = validate_data(self, X, y, dtype=np.float64)
            self.classes_ = initial_classes(labels, classes)
            if len(self.classes_) < 2:
                raise ValueError(
                    "there must be at least two classes; got 1 class, "
                    f"{self.classes_[0]}. Pass all labels as `classes`."
                )
            self._step(data, labels)
        return self

    def _step(self, data: FloatArray, labels: AnyArray) -> None:
        signs = one_versus_rest(class_numbers(labels, self.classes_), len(self.classes_))
        self._descend(own_copy(data), signs, self._setting("loss"), 0.0)

    def _fit_weights(self, data: FloatArray, targets: AnyArray) -> None:
        classes, numbers = several_classes(targets)
        rows = self._fit_features(data)
        signs = one_versus_rest(numbers, len(classes))
        self._keep([self._solver().fit(rows, row) for row in signs])
        self.classes_ = classes

    def _path(self, data: Samples, settings: dict[str, Any]) -> LifetimePath:
        return sgd_lifetime_path(*data, loss=self.loss, **settings)

    def _solver(self) -> LinearSVC | LogisticRegression:
        if self.loss == "log_loss":
            return LogisticRegression(**self._solver_options())
        return LinearSVC(loss="hinge", random_state=self.random_state, **self._solver_options())

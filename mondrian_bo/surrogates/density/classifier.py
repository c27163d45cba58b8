"""Classification by the densities of the classes (Balog2016thesis, Figure 2.2)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mondrian_bo.shared.array_types import AnyArray, FloatArray, IntArray
from mondrian_bo.surrogates.density.estimator import MondrianForestDensity, box_of
from mondrian_bo.surrogates.estimators.base import SupervisedEstimator
from mondrian_bo.surrogates.estimators.locks import reads
from mondrian_bo.surrogates.estimators.validation import check_samples, sorted_classes


class MondrianDensityClassifier(ClassifierMixin, SupervisedEstimator):
    """Classifier by Bayes' rule, with a :class:`MondrianForestDensity` of each class.

    Parameters
    ----------
    n_estimators, lifetime, concentration
        See :class:`MondrianForestDensity`. With ``lifetime="auto"`` each class has its own.
    bounds : array-like of shape (n_features, 2) or None, default=None
        The box, the same for all classes. None is the range of all data, widened.
    margin : float, default=0.1
        How much the range is widened on each side, as a share of it.
    priors : array-like of shape (n_classes,) or None, default=None
        Probabilities of the classes, in their order; None is their frequencies.
    random_state : int, RandomState instance or None, default=None
        Seed of the trees, whose partitions of the box are the same for all classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    densities_ : list of MondrianForestDensity
        The density of each class.
    priors_ : ndarray of shape (n_classes,)
        Probabilities of the classes.

    Notes
    -----
    An input outside of the box gets the probabilities of the nearest point of the box.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mondrian_bo.surrogates import MondrianDensityClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(MondrianDensityClassifier(random_state=0).fit(X, y).score(X, y) > 0.9)
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **MondrianForestDensity._parameter_constraints,
        "priors": ["array-like", None],
    }

    classes_: AnyArray
    densities_: list[MondrianForestDensity]

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        lifetime: float | Literal["auto"] = "auto",
        concentration: float = 0.01,
        bounds: ArrayLike | None = None,
        margin: float = 0.1,
        priors: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.concentration = concentration
        self.bounds = bounds
        self.margin = margin
        self.priors = priors
        self.random_state = random_state

    @reads
    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Return the log probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Natural logarithms. Columns are those of `classes_`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        check_is_fitted(self, "densities_")
        box = self.densities_[0].model_.box
        points = np.clip(check_samples(self, X), box[0], box[1])
        log_densities = [density.score_samples(points) for density in self.densities_]
        with np.errstate(divide="ignore"):
            joint = np.stack(log_densities, axis=1) + np.log(self.priors_)
        return np.asarray(log_softmax(joint, axis=1))

    @reads
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probabilities of the classes, shape (n_samples, n_classes).

        Parameters and errors are those of :meth:`predict_log_proba`.
        """
        return np.exp(self.predict_log_proba(X))

    @reads
    def predict(self, X: ArrayLike) -> AnyArray:
        """Return the most probable class of each input, shape (n_samples,).

        Parameters and errors are those of :meth:`predict_log_proba`.
        """
        log_proba = self.predict_log_proba(X)
        return np.asarray(self.classes_[log_proba.argmax(axis=1)])

    def _fit(self, X: ArrayLike, y: ArrayLike) -> None:
        data, targets = validate_data(self, X, y, dtype=np.float64)
        self.classes_, numbers = sorted_classes(targets)
        self.priors_ = check_priors(self.priors, np.bincount(numbers))
        box = box_of(data, self.bounds, float(self.margin))
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        self.densities_ = [
            MondrianForestDensity(
                self.n_estimators,
                lifetime=self.lifetime,
                concentration=self.concentration,
                bounds=box.T,
                random_state=seed,
            ).fit(data[numbers == k])
            for k in range(len(self.classes_))
        ]


def check_priors(priors: ArrayLike | None, counts: IntArray) -> FloatArray:
    """Return the probabilities of the classes: those given, or their frequencies.

    Raises
    ------
    ValueError
        If those given are not one for each class, or no probabilities.
    """
    if priors is None:
        return np.asarray(counts / counts.sum())
    given = np.asarray(priors, dtype=np.float64)
    if given.shape != counts.shape:
        raise ValueError(f"priors must have shape {counts.shape}, got {given.shape}")
    if not np.all(given >= 0.0) or not np.isclose(given.sum(), 1.0):
        raise ValueError("priors must be non-negative and add up to 1")
    return given

"""Wrappers that make the online forests estimators of river: a sample at a time, as dictionaries.

The forests have a fixed number of features and classes, and keep the points that they have learnt.
When a feature or a class appears the forest is made anew from these points. That costs as much as
learning them again, once for each feature and class.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from river import base
from sklearn.base import clone

from mondrian_bo.integrations.river.features import FeatureTable
from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.amf.classifier import AMFClassifier
from mondrian_bo.surrogates.amf.regressor import AMFRegressor
from mondrian_bo.surrogates.estimators.validation import unchanged_by_failure
from mondrian_bo.surrogates.mondrian_forest.classifier import MondrianForestClassifier
from mondrian_bo.surrogates.mondrian_forest.regressor import MondrianForestRegressor

OnlineForest = AMFRegressor | MondrianForestRegressor | AMFClassifier | MondrianForestClassifier
"""Forests with `partial_fit` that keep their points."""


class _Stream:
    """A forest and the columns of its features."""

    def __init__(self, estimator: OnlineForest) -> None:
        self.forest: Any = clone(estimator)
        self.table = FeatureTable()
        self.n_points = 0

    @contextmanager
    def unchanged_by_failure(self) -> Iterator[None]:
        """Restore the attributes if the block raises; a forest restores its own."""
        with unchanged_by_failure(self):
            self.table = self.table.copy()
            yield

    def learn(self, x: Mapping[Hashable, Any], target: float, **options: Any) -> None:
        """Learn a sample; make the forest anew if it has new features."""
        table = self.table
        known = len(table)
        table.row(x)  # raises before anything changes
        row = table.learn(x)[None]
        if len(table) > known and self.n_points > 0:
            points, targets = self.learnt()
            # A constant feature is not split there.
            more = np.tile(table.before(row[0], known), (len(points), 1))
            self.restart(np.hstack([points, more]), targets, **options)
        if len(table) > 0:
            self.forest.partial_fit(row, np.array([target]), **options)
            self.n_points += 1

    def learnt(self) -> tuple[FloatArray, AnyArray]:
        """Return the points and targets learnt so far."""
        forest = self.forest.model_.forest
        points = np.array(forest.points[0, : self.n_points], dtype=np.float64)
        points += getattr(self.forest, "offset_", 0.0)
        if len(points) < self.n_points:
            warnings.warn(
                f"A feature or a class is new, and the forest is made anew from {len(points)} of "
                f"{self.n_points} samples: with max_nodes={self.forest.max_nodes} it keeps no "
                "more.",
                stacklevel=4,
            )
        return points, np.array(forest.targets[: self.n_points])

    def restart(self, points: FloatArray, targets: AnyArray, **options: Any) -> None:
        """Learn points with a new forest."""
        self.forest = clone(self.forest).partial_fit(points, targets, **options)

    def row(self, x: Mapping[Hashable, Any]) -> FloatArray:
        """Return the row of a sample, shape (1, n_columns)."""
        return self.table.row(x)[None]


class RiverRegressor(base.Regressor):
    """A forest for regression as an estimator of river.

    Parameters
    ----------
    estimator : AMFRegressor or MondrianForestRegressor
        The forest with its settings. It is not changed; a copy learns.

    Raises
    ------
    TypeError
        If `estimator` is another estimator.

    Notes
    -----
    Features may appear and disappear. A sample that lacks a number gets the mean of that feature so
    far. Dates are numbers of days, and times without a zone are in UTC. Each value of a string is a
    column, which is 1 for samples with that value and 0 for all others, also for those before the
    value appeared. Memory grows with the number of samples, except with
    ``AMFRegressor(max_nodes=)``: a new feature then makes the forest forget all but a few samples,
    with a warning.

    A sample that cannot be learnt leaves the estimator unchanged.

    Examples
    --------
    >>> from mondrian_bo.integrations.river import RiverRegressor
    >>> from mondrian_bo.surrogates import AMFRegressor
    >>> model = RiverRegressor(AMFRegressor(random_state=0))
    >>> for i in range(100):
    ...     model.learn_one({"x": i / 100}, 3.0 * (i > 50))
    >>> model.predict_one({"x": 0.9}) > 2.0
    True
    """

    def __init__(self, estimator: AMFRegressor | MondrianForestRegressor) -> None:
        # Other online estimators do not keep their points and targets as they were given.
        if not isinstance(estimator, AMFRegressor | MondrianForestRegressor):
            raise TypeError(
                "`estimator` must be an AMFRegressor or a MondrianForestRegressor, got "
                f"{estimator!r}."
            )
        self.estimator = estimator
        self._stream = _Stream(estimator)

    def learn_one(self, x: dict[Hashable, Any], y: float) -> None:
        """Learn a sample.

        Parameters
        ----------
        x : dict
            Values of features by name.
        y : float
            The target.

        Raises
        ------
        ValueError
            If a number is not finite, not real, or too large for the forest.
        """
        with self._stream.unchanged_by_failure():
            self._stream.learn(x, float(y))

    def predict_one(self, x: dict[Hashable, Any]) -> float:
        """Predict the target of a sample.

        Parameters
        ----------
        x : dict
            Values of features by name.

        Returns
        -------
        float
            The predicted mean; 0 before the first sample.

        Raises
        ------
        ValueError
            If a number is not finite or not real.
        """
        if self._stream.n_points == 0:
            return 0.0
        return float(self._stream.forest.predict(self._stream.row(x))[0])

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"estimator": AMFRegressor(3, random_state=0)}
        yield {"estimator": MondrianForestRegressor(3, random_state=0)}


class RiverClassifier(base.Classifier):
    """A forest for classification as an estimator of river, for any number of classes.

    Parameters
    ----------
    estimator : AMFClassifier or MondrianForestClassifier
        The forest with its settings. It is not changed; a copy learns.

    Raises
    ------
    TypeError
        If `estimator` is another estimator.

    Notes
    -----
    See :class:`RiverRegressor` for features. Classes may appear at any time; probabilities are
    those of the classes seen so far.

    Examples
    --------
    >>> from mondrian_bo.integrations.river import RiverClassifier
    >>> from mondrian_bo.surrogates import AMFClassifier
    >>> model = RiverClassifier(AMFClassifier(random_state=0))
    >>> for i in range(100):
    ...     model.learn_one({"x": i / 100}, "high" if i > 50 else "low")
    >>> model.predict_one({"x": 0.9})
    'high'
    """

    def __init__(self, estimator: AMFClassifier | MondrianForestClassifier) -> None:
        if not isinstance(estimator, AMFClassifier | MondrianForestClassifier):
            raise TypeError(
                "`estimator` must be an AMFClassifier or a MondrianForestClassifier, got "
                f"{estimator!r}."
            )
        self.estimator = estimator
        self._stream = _Stream(estimator)
        self._labels: list[Hashable] = []

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Hashable, Any], y: Hashable) -> None:
        """Learn a sample.

        Parameters
        ----------
        x : dict
            Values of features by name.
        y : hashable
            The class, equal to itself: no NaN.

        Raises
        ------
        ValueError
            If a number is not finite, not real, or too large for the forest, or if the class is NaN
            or not hashable.
        """
        _check_label(y)
        stream = self._stream
        stream.table.row(x)  # raises before the forest is made anew
        with unchanged_by_failure(self), stream.unchanged_by_failure():
            if y not in self._labels:
                self._labels = [*self._labels, y]
                if stream.n_points > 0:
                    stream.restart(*stream.learnt(), classes=self._numbers())
            stream.learn(x, self._labels.index(y), classes=self._numbers())

    def predict_proba_one(self, x: dict[Hashable, Any], **kwargs: Any) -> dict[Hashable, float]:
        """Predict the class of a sample.

        Parameters
        ----------
        x : dict
            Values of features by name.
        **kwargs : object
            Not used.

        Returns
        -------
        dict
            The probability of each class seen so far; empty before the first sample.

        Raises
        ------
        ValueError
            If a number is not finite or not real.
        """
        if self._stream.n_points == 0:
            return {}
        found = self._stream.forest.predict_proba(self._stream.row(x))[0]
        return dict(zip(self._labels, found.tolist(), strict=True))

    def _numbers(self) -> AnyArray:
        return np.arange(len(self._labels))

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"estimator": AMFClassifier(3, random_state=0)}
        yield {"estimator": MondrianForestClassifier(3, random_state=0)}


def _check_label(y: Any) -> None:
    try:
        hash(y)
        good = bool(y == y)
    except TypeError:  # lists are not hashable, and pandas' NA has no truth value
        good = False
    if not good:
        raise ValueError(
            "y must be a class: a hashable value that is not missing, such as a string or an "
            f"integer; got {y!r}"
        )

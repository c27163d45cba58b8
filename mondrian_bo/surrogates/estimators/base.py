"""Bases of the estimators: `fit` once, over a hook for each, and learning that may be interrupted.

An exception may come at any moment of `partial_fit`, such as that of Ctrl-C or of memory that does
not suffice. While an estimator learns, the attribute that holds its model is set aside. If learning
does not end, it is missing. The next access undoes the call: the estimator learns its former
samples again, which the model has kept. Other threads wait while an estimator learns.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from mondrian_bo.surrogates.estimators.locks import learns, lock_of
from mondrian_bo.surrogates.estimators.validation import unchanged_by_failure
from mondrian_bo.surrogates.shared.writable_arrays import with_writable_arrays


class _SharedByThreads(BaseEstimator):
    """An estimator that several threads may share.

    Its arrays become writable when it is unpickled, so it can go on learning if its file was mapped
    read-only.
    """

    _unfinished: tuple[int, Any] | None = None
    """The number of samples before a call that has not ended, and what was learnt."""

    _readers_take_turns: ClassVar[bool] = False
    """Whether predictions store results for later ones, so that only one may run at a time."""

    def _undo_unfinished(self) -> None:
        """Undo a call that has not ended."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock: a copy makes its own."""
        with lock_of(self).of_reader(self._readers_take_turns):
            state = dict(super().__getstate__())
        del state["_readers_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(with_writable_arrays(state))


class _SetAside:
    """What an estimator has learnt, where its own attribute is missing: not yet, or set aside.

    A method `__getattr__` would make the access to all other attributes slower.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, estimator: UndoesInterruptions | None, owner: type) -> Any:
        """Undo a call that has not ended, and return what was learnt before."""
        if estimator is not None:
            if estimator._unfinished is not None:
                estimator._undo_unfinished()
            if self._name in estimator.__dict__:
                return estimator.__dict__[self._name]
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}")


class UndoesInterruptions(_SharedByThreads):
    """An estimator with a `partial_fit` that happens completely or not at all.

    A subclass names the attribute that holds what it has learnt, changes it in a function that it
    passes to `_learn_completely`, and computes its former value in `_former`.
    """

    _learnt: ClassVar[str]
    """Name of the attribute that every prediction needs, and that learning changes in place."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_learnt" in vars(cls):
            setattr(cls, cls._learnt, _SetAside(cls._learnt))

    def _learn_completely(
        self, n_samples: int, learn: Callable[..., dict[str, Any] | None], *arguments: Any
    ) -> None:
        """Learn more samples, or none of them.

        Parameters
        ----------
        n_samples : int
            The number of samples learnt so far.
        learn : callable
            Learns more samples, given `arguments`. What was learnt must be one of them or the
            owner of the method, as the attribute is not there. It may return new values of others.
        """
        name = self._learnt
        learnt = getattr(self, name)
        self._unfinished = n_samples, learnt
        delattr(self, name)
        replaced = learn(*arguments) or {}
        # In one step, as an exception may come between any two.
        self.__dict__.update({name: learnt, "_unfinished": None} | replaced)

    @learns
    def _undo_unfinished(self) -> None:
        if self._unfinished is not None:
            n_samples, learnt = self._unfinished
            self.__dict__.update(self._former(learnt, n_samples) | {"_unfinished": None})

    def __getstate__(self) -> dict[str, Any]:
        """Copy what was learnt, as it may change before the state is written."""
        with lock_of(self).of_reader(self._readers_take_turns):
            state = super().__getstate__()
            if self._learnt in state:
                state[self._learnt] = copy.deepcopy(state[self._learnt])
            return state

    def _former(self, learnt: Any, n_samples: int) -> dict[str, Any]:
        """Return the attributes as they were before an interrupted call.

        `learnt` may be in any state, but has kept its first `n_samples` samples. It must not be
        changed here, because this call may be interrupted too.
        """
        raise NotImplementedError


@contextmanager
def _fit_or_unchanged(estimator: BaseEstimator) -> Iterator[None]:
    """Leave an estimator unchanged if the block raises, and nothing of interrupted calls if not."""
    with unchanged_by_failure(estimator):
        yield
        vars(estimator).pop("_unfinished", None)


class SupervisedEstimator(_SharedByThreads):
    """A regressor or a classifier. A failed `fit` leaves it unchanged.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if the first data had string column names.
    """

    _parameter_constraints: dict[str, list[Any]] = {}  # noqa: RUF012

    n_features_in_: int

    _kept_settings: dict[str, Any] | None = None
    """Parameters as they were when learning began; None in pickles of earlier versions."""

    def _keep_settings(self, *names: str) -> None:
        """Keep parameters for later calls of `partial_fit`: `set_params` may change them."""
        self._kept_settings = {name: copy.copy(getattr(self, name)) for name in names}

    def _setting(self, name: str) -> Any:
        """Return a kept parameter, or the present one if none is kept."""
        kept = self._kept_settings
        return getattr(self, name) if kept is None else kept[name]

    @learns
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn a batch of samples, and forget earlier ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs on any scale.
        y : array-like of shape (n_samples,)
            Finite targets; for a classifier the class labels, numbers or strings.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter, X or y is not as described. The estimator then stays unchanged.
        """
        self._validate_params()
        with _fit_or_unchanged(self):
            self._fit(X, y)
        return self

    @abstractmethod
    def _fit(self, X: ArrayLike, y: ArrayLike) -> None:
        """Validate the samples and learn them. The parameters are within their constraints."""


class UnsupervisedEstimator(_SharedByThreads):
    """A transformer, a kernel or a density. A failed `fit` leaves it unchanged.

    Further attributes are those of :class:`SupervisedEstimator`.
    """

    n_features_in_: int

    @learns
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn from inputs, and forget earlier ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.
        y : array-like of shape (n_samples,) or None, default=None
            Targets, which supervised kernels need. Others ignore them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter, X or y is not as described. The estimator then stays unchanged.
        """
        self._validate_params()
        with _fit_or_unchanged(self):
            self._fit(X, y)
        return self

    @abstractmethod
    def _fit(self, X: ArrayLike, y: ArrayLike | None) -> None:
        """Validate the inputs and learn them. The parameters are within their constraints."""

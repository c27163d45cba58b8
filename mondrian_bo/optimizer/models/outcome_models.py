"""Models of several outcomes, each of those trials whose value is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeAlias

import numpy as np

from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.optimizer.shared.trials import Trials, TrialsState
from mondrian_bo.shared.array_types import FloatArray

NewModel: TypeAlias = Callable[[Trials, int], OutcomeModel]
"""Makes an empty model of trials; the number of the outcome determines its draws."""


Moments: TypeAlias = tuple[FloatArray, FloatArray]
"""Means and standard deviations."""


class OutcomeModels:
    """A growing list of models. A model learns when it is first asked for a prediction.

    Parameters
    ----------
    n_dimensions : int
        Dimension d of rows.
    new_model : callable
        Makes an empty model of trials.

    Attributes
    ----------
    models : list of OutcomeModel
        The models of all outcomes.
    """

    def __init__(self, n_dimensions: int, new_model: NewModel) -> None:
        self._n_dimensions = n_dimensions
        self._new_model = new_model
        self.models: list[OutcomeModel] = []

    def __len__(self) -> int:
        return len(self.models)

    @property
    def informed(self) -> list[OutcomeModel]:
        """The models of outcomes that have a known value."""
        return [model for model in self.models if len(model.trials)]

    def tell(
        self, rows: FloatArray, values: FloatArray, observed: FloatArray | None = None
    ) -> None:
        """Store the values of trials, O(1) each.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            The points.
        values : float64 array of shape (m, q)
            Values, larger is better; NaN where unknown. More columns than before add outcomes.
        observed : float64 array of shape (m, q, 2) or None, default=None
            With known errors, the values as observed and these errors, see :class:`Trials`.
        """
        while len(self.models) < values.shape[1]:
            new_trials = Trials(self._n_dimensions)
            self.models.append(self._new_model(new_trials, len(self.models)))
        for i, (model, column) in enumerate(zip(self.models, values.T, strict=False)):
            known = ~np.isnan(column)
            own = None if observed is None else observed[known, i]
            model.trials.tell(rows[known], column[known], observed=own)

    def state(self) -> tuple[TrialsState, ...]:
        """Return what `restore` needs; O(1)."""
        return tuple(model.trials.state() for model in self.models)

    def restore(self, state: tuple[TrialsState, ...]) -> None:
        """Remove what was added after a state; O(what is removed)."""
        del self.models[len(state) :]
        for model, own in zip(self.models, state, strict=True):
            model.trials.restore(own)

    def forget(self) -> None:
        """Let all models learn their trials again when they are used next."""
        for model in self.models:
            model.forget()

    def outcome_moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations in the units of the values, both of shape (m, q).

        NaN for outcomes without a known value.
        """
        mean, std = np.full((2, len(rows), len(self)), np.nan)
        for i, model in enumerate(self.models):
            if len(model.trials):
                mean[:, i], std[:, i] = model.outcome_moments(rows)
        return mean, std

    @contextmanager
    def imputing(self, rows: FloatArray, rng: np.random.Generator) -> Iterator[None]:
        """Impute running trials with values drawn from the models inside a ``with`` block."""
        with ExitStack() as stack:
            for model in self.informed:
                stack.enter_context(model.imputing(rows, rng))
            yield

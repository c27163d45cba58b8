"""The predictive route: a generator that fits, suggests, predicts and returns the best point."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from ax.generators.torch_base import TorchGenerator

from mondrian_bo.integrations.ax.engine import Engine, Observation, check_seed
from mondrian_bo.integrations.ax.goal import Goal
from mondrian_bo.integrations.ax.observations import Parameters
from mondrian_bo.integrations.ax.space import TranslatedSpace
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.array_types import FloatArray


class MondrianGenerator(TorchGenerator):
    """Ax generator that searches with :class:`mondrian_bo.MondrianOptimizer` and predicts.

    Ax before 1.0 calls generators models. :class:`MondrianAdapter` passes it Ax's parameterizations
    and data without transforming them. It uses numpy, not torch; it extends ``TorchGenerator``
    because Ax predicts best points and Pareto frontiers only with such generators.

    Parameters
    ----------
    seed : int or None, default=None
        Seed of all randomness; None takes entropy from the system.
    settings : mapping, optional
        Further arguments of :class:`mondrian_bo.MondrianOptimizer`: ``surrogate``, ``acquisition``,
        ``n_startup_trials``, ``n_estimators``, ``n_candidates``.

    Raises
    ------
    ValueError, TypeError
        If the seed or the settings are not what the optimizer takes.
    """

    def __init__(self, seed: int | None = None, settings: Mapping[str, Any] | None = None) -> None:
        self.seed = check_seed(seed)
        self.settings: dict[str, Any] = dict(settings or {})
        self._engine = Engine(seed, self.settings)

    def fit(
        self,
        space: TranslatedSpace,
        goal: Goal | None,
        observations: Mapping[Hashable, Observation],
        parameters: Mapping[Hashable, Parameters],
        failed: Mapping[Hashable, Parameters],
    ) -> None:
        """Learn the new observations of an experiment.

        Parameters
        ----------
        space : TranslatedSpace
            The search space.
        goal : Goal or None
            Objective and constraints; None is enough for predictions.
        observations, parameters, failed : mapping
            As in :meth:`Engine.update`.
        """
        self._engine.update(space, goal, observations, parameters, failed)

    def gen(
        self,
        n: int,
        pending: Sequence[Parameters],
        index: int,
        within: SearchSpace,
        goal: Goal | None = None,
    ) -> list[dict[str, Any]]:
        """Suggest arms one after the other; earlier ones are pending for later ones.

        Parameters
        ----------
        n : int
            Number of arms.
        pending : sequence of mappings
            Parameterizations of running arms.
        index : int
            Number of the first suggestion; with the seed it determines the random draws.
        within : SearchSpace
            Part of the space to stay in.
        goal : Goal or None, default=None
            Objective and constraints, if they differ from those of `fit`.

        Returns
        -------
        list of dict
            Parameterizations.

        Raises
        ------
        ax.exceptions.core.UnsupportedError
            If there is no optimization config, or it has too many objectives.
        """
        space = self.space
        if goal is not None:
            self._engine.pursue(goal)
        rows = [space.encode(parameters) for parameters in pending]
        arms: list[dict[str, Any]] = []
        for i in range(n):
            arms.append(dict(space.decode(self._engine.suggest(rows, index + i, within))))
            rows.append(space.encode(arms[-1]))
        return arms

    def predict(
        self, parameters: Sequence[Parameters], metrics: Sequence[str]
    ) -> tuple[FloatArray, FloatArray]:
        """Predict the noise-free outcomes of metrics.

        Parameters
        ----------
        parameters : sequence of m mappings
            Parameterizations.
        metrics : sequence of k str
            Signatures of metrics.

        Returns
        -------
        mean, variance : float64 arrays of shape (m, k)
            Metrics are modelled independently, without covariances.

        Raises
        ------
        ax.exceptions.core.DataRequiredError
            If a metric has no data.
        """
        space = self.space
        rows = np.array([space.encode(one) for one in parameters])
        rows = rows.reshape(len(parameters), space.space.n_dimensions)
        moments = [self._engine.predict(metric, rows) for metric in metrics]
        shape = (len(parameters), len(metrics))
        mean = np.array([mean for mean, _ in moments]).T.reshape(shape)
        std = np.array([std for _, std in moments]).T.reshape(shape)
        return mean, std * std

    def best_point(self) -> dict[str, Any] | None:
        """Return the feasible arm with the best predicted objective.

        Returns
        -------
        dict or None
            The parameterization; None without a feasible arm, or with several objectives.
        """
        return self._engine.best_arm()

    def cross_validate(
        self,
        observations: Mapping[Hashable, Observation],
        parameters: Mapping[Hashable, Parameters],
        test: Sequence[Parameters],
        metrics: Sequence[str],
    ) -> tuple[FloatArray, FloatArray]:
        """Return the predictions of models that learn the given observations alone.

        Parameters
        ----------
        observations, parameters : mapping
            As in :meth:`Engine.update`.
        test : sequence of m mappings
            Parameterizations to predict.
        metrics : sequence of k str
            Signatures of metrics.

        Returns
        -------
        mean, variance : float64 arrays of shape (m, k)
            As :meth:`predict` returns them.

        Raises
        ------
        ax.exceptions.core.DataRequiredError
            If a metric has no data.
        """
        other = MondrianGenerator(self._engine.seed, self.settings)
        other.fit(self.space, None, observations, parameters, {})
        return other.predict(test, metrics)

    @property
    def n_observations(self) -> int:
        """Number of arms whose outcomes are known."""
        return self._engine.n_observations

    @property
    def space(self) -> TranslatedSpace:
        """The search space of the latest `fit`."""
        if self._engine.space is None:
            raise RuntimeError("The generator must be fit before it is used.")
        return self._engine.space

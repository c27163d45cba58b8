"""MondrianSampler: the optimizer as an Optuna sampler."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from mondrian_bo.integrations.optuna.distributions import to_space
from mondrian_bo.integrations.optuna.study_reader import (
    StudyReader,
    complete,
    encode,
    publish,
    running_values,
    to_external,
)
from mondrian_bo.optimizer.portfolio import AcquisitionChoice, check_settings
from mondrian_bo.surrogates.registry import SurrogateName

if TYPE_CHECKING:
    from mondrian_bo.optimizer.optimizer import MondrianOptimizer


class MondrianSampler(BaseSampler):
    """Sampler for single-objective Optuna studies, with a probabilistic model of the objective.

    The default model is a Gaussian process up to 200 trials, and many of them in the leaves of a
    Mondrian forest beyond. One model covers all parameters of the trials, conditional ones
    included: the sampler learns from the trials which choices activate which parameters. The time
    of a suggestion grows with the logarithm of the number of trials.

    Parameters
    ----------
    seed : int or None, default=None
        Seed. With one thread, the same seed gives the same trials. None takes entropy from the
        system.
    n_startup_trials : int, default=10
        Number of quasi-random first trials.
    surrogate : {"gaussian_process", "forest", "amf", "kernel"}, default="gaussian_process"
        The model, see :class:`mondrian_bo.MondrianOptimizer`.
    acquisition : str, Acquisition or Portfolio, default="auto"
        The score that suggestions maximise: "auto", "ucb", "ei", "log_ei", "pi", "thompson", an
        instance from :mod:`mondrian_bo.acquisitions` or a
        :class:`mondrian_bo.optimizer.portfolio.Portfolio`.
    n_estimators : int or None, default=None
        Number of trees or partitions; None is the surrogate's default.
    n_candidates : int, default=600
        Number of candidates to score for each suggestion.

    Raises
    ------
    ValueError
        If an argument is not as described.

    Notes
    -----
    A pruned trial is learnt with its last reported value, but no better than the median of the
    complete trials; without a report, with the median. A failed trial is not learnt, and its exact
    point is not suggested again. If the two nearest trials failed as well, it is learnt with the
    median. Running trials, also those of other threads and workers, are imputed with the model's
    prediction. If a parameter's range has changed, suggestions follow the latest range and the
    model keeps the trials outside of it; a range that keeps changing is covered as a whole.

    Multi-objective studies and constraints are refused with a ``ValueError``.

    Examples
    --------
    >>> import optuna
    >>> from mondrian_bo import MondrianSampler
    >>> study = optuna.create_study(sampler=MondrianSampler(seed=0))
    >>> study.optimize(lambda trial: trial.suggest_float("x", -1, 2) ** 2, n_trials=30)
    >>> study.best_value < 0.01
    True
    """

    def __init__(
        self,
        seed: int | None = None,
        *,
        n_startup_trials: int = 10,
        surrogate: SurrogateName = "gaussian_process",
        acquisition: AcquisitionChoice = "auto",
        n_estimators: int | None = None,
        n_candidates: int = 600,
    ) -> None:
        check_settings(surrogate, acquisition, n_startup_trials, n_estimators, n_candidates)
        self._entropy = _check_seed(seed)
        self._settings: dict[str, Any] = {
            "surrogate": surrogate,
            "acquisition": acquisition,
            "n_startup_trials": n_startup_trials,
            "n_estimators": n_estimators,
            "n_candidates": n_candidates,
        }
        self._lock = threading.RLock()
        self._memory: WeakKeyDictionary[object, dict[object, _StudyMemory]] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock and the memory of studies, which are read again from their storage."""
        state = self.__dict__.copy()
        del state["_lock"], state["_memory"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore, with a lock of its own and no memory of studies."""
        self.__dict__.update(state)
        self._lock = threading.RLock()
        self._memory = WeakKeyDictionary()

    def reseed_rng(self) -> None:
        """Do nothing: draws depend on the seed and the trial's number, which no workers share."""

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return all parameters that finished trials have had, with their latest distributions."""
        _check_study(study)
        with self._lock:
            memory = self._memory_of(study)
            memory.reader.read(study)
            return dict(memory.reader.distributions)

    def sample_relative(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],
    ) -> dict[str, Any]:
        """Suggest values for the parameters of a search space, as far as they will be active."""
        _check_study(study)
        if not search_space:
            return {}
        with self._lock:
            memory = self._memory_of(study)
            running = memory.reader.read(study)
            optimizer = memory.optimizer_for(study, search_space, self._entropy, self._settings)
            if optimizer is None:
                return {}
            others = [running_values(one) for one in running if one.number != trial.number]
            pending = encode(optimizer.space, others)
            pending = pending[optimizer.accepts(pending)]
            suggested = optimizer.suggest(pending, trial.number)
        params = to_external(search_space, suggested)
        internal = {name: search_space[name].to_internal_repr(params[name]) for name in params}
        publish(study, trial, internal)
        return params

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Draw uniformly a parameter that no finished trial has had, or whose range is new."""
        _check_study(study)
        words = [*self._entropy, trial.number, zlib.crc32(param_name.encode())]
        seed = int(np.random.SeedSequence(words).generate_state(1)[0])
        sampler = RandomSampler(seed=seed)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def _memory_of(self, study: optuna.Study) -> _StudyMemory:
        # Keyed by the storage object: all in-memory studies have the same id. Hyperband shows the
        # trials of one bracket at a time, so each bracket is a study of its own.
        studies = self._memory.setdefault(study._storage, {})
        key = (study._study_id, getattr(study, "_bracket_id", None))
        if key not in studies:
            studies[key] = _StudyMemory()
        return studies[key]


class _StudyMemory:
    """The reader of a study, and the optimizer that has been told what it read."""

    def __init__(self) -> None:
        self.reader = StudyReader()
        self._optimizer: MondrianOptimizer | None = None
        self._recipe: object = None
        self._finished = self.reader.finished
        self._n_told = 0

    def optimizer_for(
        self,
        study: optuna.Study,
        search_space: Mapping[str, BaseDistribution],
        entropy: list[int],
        settings: Mapping[str, Any],
    ) -> MondrianOptimizer | None:
        """Return an optimizer over the space that knows all finished trials.

        It is rebuilt only when the space or its learnt conditions have changed, or when another
        study has taken the place of this one.
        """
        learner = self.reader.conditions
        recipe = (dict(search_space), learner.conditions, learner.unexplained)
        if recipe != self._recipe or self._finished is not self.reader.finished:
            space = to_space(search_space, learner.conditions)
            self._recipe = recipe
            self._finished = self.reader.finished
            self._n_told = 0
            self._optimizer = None
            if space is not None:
                # Absences have no explanation where the space cannot state a condition.
                lacks_conditions = any(
                    space[name].condition is None for name in learner.conditions if name in space
                )
                is_maximized = study.direction == StudyDirection.MAXIMIZE
                # Loaded here: a sampler is constructed without numba and scipy.
                from mondrian_bo.optimizer.optimizer import MondrianOptimizer

                self._optimizer = MondrianOptimizer(
                    space,
                    direction="maximize" if is_maximized else "minimize",
                    seed=entropy,
                    allow_missing=learner.unexplained or lacks_conditions,
                    **settings,
                )
        if self._optimizer is not None and self._n_told < len(self.reader.finished):
            self._tell(self._optimizer)
        return self._optimizer

    def _tell(self, optimizer: MondrianOptimizer) -> None:
        new = self.reader.finished[self._n_told :]
        self._n_told += len(new)
        outcomes = np.array([trial.outcome for trial in new])
        asked = encode(optimizer.space, [trial.values for trial in new])
        rows = complete(optimizer.space, asked, [trial.unasked for trial in new])
        known = optimizer.accepts(rows)
        optimizer.tell_rows(rows[known], outcomes[known])
        is_filled = (np.isnan(asked) & ~np.isnan(rows)).any(axis=1)
        if is_filled.any():
            # With the values that it asked for, the trial would be the same whatever else is
            # proposed. Not if it failed, maybe before it asked for more, nor if a value is unknown.
            is_same = ~np.isnan(outcomes) & optimizer.space.is_complete(rows)
            optimizer.exclude_rows(asked[is_filled & is_same & optimizer.accepts(asked)])


def _check_study(study: optuna.Study) -> None:
    if study._is_multi_objective():
        raise ValueError("MondrianSampler does not support multi-objective studies yet.")


def _check_seed(seed: int | None) -> list[int]:
    if seed is None:
        return [int(word) for word in np.random.SeedSequence().generate_state(4)]
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"`seed` must be a non-negative integer or None, got {seed!r}.")
    return [int(seed)]

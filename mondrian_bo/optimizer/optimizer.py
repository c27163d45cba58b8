"""The optimizer: ask and tell over a search space, with no framework around it."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, overload

import numpy as np

from mondrian_bo.acquisitions import Acquisition
from mondrian_bo.acquisitions.feasibility import Score
from mondrian_bo.array_types import BoolArray, FloatArray
from mondrian_bo.optimizer.objective_model import ObjectiveModel
from mondrian_bo.optimizer.portfolio import Portfolio, get_portfolio
from mondrian_bo.optimizer.restarts import RestartingSearch
from mondrian_bo.optimizer.search import Search
from mondrian_bo.optimizer.settings import check_settings
from mondrian_bo.optimizer.trials import Trials
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.surrogates.registry import get_surrogate

Params = dict[str, object]


class MondrianOptimizer:
    """Sequential optimisation of an expensive function with a Mondrian forest.

    Parameters
    ----------
    space : SearchSpace
        Where to search.
    direction : {"minimize", "maximize"}, default="minimize"
        What is wanted of the values.
    surrogate : {"gaussian_process", "forest", "amf", "kernel"}, default="gaussian_process"
        The model: "gaussian_process" is a Mondrian forest with Gaussian processes in its leaves,
        which up to 200 trials is one process; "forest" is the forest of Lakshminarayanan2016, whose
        nodes predict with the empirical moments of their values (section 5.3); "amf" an aggregated
        Mondrian forest (Mourtada2021); "kernel" ridge regression with the Mondrian kernel
        (Balog2016).
    acquisition : str, Acquisition or Portfolio, default="auto"
        How to choose the next trial: "auto" (one of several rules, drawn for each trial, and with
        Gaussian processes fresh starts where the search has collapsed), "ucb", "ei", "log_ei",
        "pi", "thompson", an instance of one, or a
        :class:`mondrian_bo.optimizer.portfolio.Portfolio`.
    n_startup_trials : int, default=10
        So many first trials are quasi-random.
    n_estimators : int or None, default=None
        Number of trees or partitions; None is 2 with Gaussian processes, 50 with the kernel and 10
        otherwise.
    n_candidates : int, default=600
        How many candidates to score for each suggestion.
    seed : int, sequence of int or None, default=None
        Seed of all randomness; None takes entropy from the system.
    allow_missing : bool, default=False
        Whether trials may lack parameters that are active by the space's conditions, as happens
        when the conditions are not known.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.

    Notes
    -----
    `tell` is O(1); the next `ask` learns what is new at O(log n) per trial, and its cost grows with
    the logarithm of the number of trials.

    Examples
    --------
    >>> from mondrian_bo import Float, MondrianOptimizer, SearchSpace
    >>> optimizer = MondrianOptimizer(SearchSpace({"x": Float(-1.0, 2.0)}), seed=0)
    >>> for _ in range(30):
    ...     params = optimizer.ask()
    ...     optimizer.tell(params, (params["x"] - 0.5) ** 2)
    >>> bool(optimizer.best[1] < 0.01)
    True
    """

    def __init__(
        self,
        space: SearchSpace,
        *,
        direction: Literal["minimize", "maximize"] = "minimize",
        surrogate: str = "gaussian_process",
        acquisition: str | Acquisition | Portfolio = "auto",
        n_startup_trials: int = 10,
        n_estimators: int | None = None,
        n_candidates: int = 600,
        seed: int | Sequence[int] | None = None,
        allow_missing: bool = False,
    ) -> None:
        if not isinstance(space, SearchSpace):
            raise TypeError(f"`space` must be a SearchSpace, got {space!r}.")
        if direction not in ("minimize", "maximize"):
            raise ValueError(f"`direction` must be 'minimize' or 'maximize', got {direction!r}.")
        check_settings(surrogate, acquisition, n_startup_trials, n_estimators, n_candidates)
        self.space = space
        self.direction = direction
        self._sign = 1.0 if direction == "maximize" else -1.0
        self._surrogate = surrogate
        self._portfolio = get_portfolio(surrogate, acquisition)
        self._n_startup_trials = n_startup_trials
        self._n_estimators = n_estimators
        self._n_candidates = n_candidates
        self._allow_missing = allow_missing
        self._model_seed, ask_seed = np.random.SeedSequence(seed).spawn(2)
        self._ask_entropy = [int(word) for word in ask_seed.generate_state(4)]
        self._epochs = RestartingSearch(
            self._new_search,
            space.is_categorical,
            space.grid_sizes == 0,
            n_startup_trials,
            self._portfolio.restarts,
        )
        self._n_asked = 0
        self._pending: list[FloatArray] = []

    @property
    def n_trials(self) -> int:
        """Number of trials told, failed ones not counted."""
        return len(self._epochs.trials) - len(self._epochs.learnt_failures)

    @property
    def pending(self) -> list[Params]:
        """Parameters asked for and not told yet, in the order of asking."""
        return [self.space.from_unit(row) for row in self._pending]

    @property
    def best(self) -> tuple[Params, float]:
        """Parameters and value of the best trial told.

        Raises
        ------
        ValueError
            If no trial has been told.
        """
        if self.n_trials == 0:
            raise ValueError("There is no best trial: no trial has been told yet.")
        row, value = self._epochs.trials.best()
        return self._decode(row), self._sign * value

    @overload
    def ask(self) -> Params: ...

    @overload
    def ask(self, n: int) -> list[Params]: ...

    def ask(self, n: int | None = None) -> Params | list[Params]:
        """Suggest the next trial, or a batch; they are pending until told.

        Parameters
        ----------
        n : int or None, default=None
            Size of a batch; None asks for one trial.

        Returns
        -------
        dict or list of dict
            Active parameters by name; a list if `n` is given.

        Raises
        ------
        ValueError
            If `n` is not positive.
        """
        if n is not None and n < 1:
            raise ValueError(f"`n` must be a positive integer or None, got {n!r}.")
        asked = []
        for _ in range(1 if n is None else n):
            params = self.space.from_unit(self._suggest(self._pending, self._n_asked))
            self._n_asked += 1
            # Decoding and encoding may differ by a rounding error: pending is what will be told.
            self._pending.append(self.space.to_unit(params))
            asked.append(params)
        return asked[0] if n is None else asked

    @overload
    def tell(self, params: Mapping[str, object], value: float) -> None: ...

    @overload
    def tell(
        self, params: Sequence[Mapping[str, object]], value: Sequence[float] | FloatArray
    ) -> None: ...

    def tell(
        self,
        params: Mapping[str, object] | Sequence[Mapping[str, object]],
        value: float | Sequence[float] | FloatArray,
    ) -> None:
        """Report a trial, asked for or not, or several.

        Parameters
        ----------
        params : mapping, or sequence of mappings
            Parameters by name.
        value : float, or sequence of float
            Their values. Infinities are very good or very bad ones; NaN says that the trial failed:
            its exact point is not suggested again while others are left, and it is not learnt,
            unless the two nearest trials failed as well: then it counts as the median.

        Raises
        ------
        KeyError, TypeError, ValueError
            If parameters or values are not what the space describes; then nothing is learnt.
        """
        many = [params] if isinstance(params, Mapping) else list(params)
        values = [float(v) for v in np.atleast_1d(value)]
        if len(many) != len(values):
            raise ValueError(f"Got {len(many)} trials, but {len(values)} values.")
        rows = [self._encode(one) for one in many]
        for row, number in zip(rows, values, strict=True):
            self._tell_row(row, number)
            if self._allow_missing and not math.isnan(number):
                # What a trial lacks it did not need: with it, it would be the same.
                self._epochs.trials.exclude(row)

    def predict(
        self, params: Mapping[str, object] | Sequence[Mapping[str, object]]
    ) -> tuple[FloatArray, FloatArray]:
        """Predict the mean and standard deviation of the objective.

        Parameters
        ----------
        params : mapping, or sequence of mappings
            m points.

        Returns
        -------
        mean, std : float64 arrays of shape (m,)
            In the units of the objective.

        Raises
        ------
        ValueError
            If no trial has been told.
        """
        if self.n_trials == 0:
            raise ValueError("There is nothing to predict from: no trial has been told yet.")
        many = [params] if isinstance(params, Mapping) else list(params)
        rows = np.array([self._encode(one) for one in many])
        return self.predict_rows(rows.reshape(-1, self.space.n_dimensions))

    def predict_rows(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict as `predict` does, at encoded points of shape (m, d)."""
        model, _ = self._epochs.whole.arms[0]
        mean, std = model.outcome_moments(rows)
        return self._sign * mean, std

    def save(self, path: str | Path) -> None:
        """Write the whole state to a file, with pickle."""
        Path(path).write_bytes(pickle.dumps(self))

    @classmethod
    def load(cls, path: str | Path) -> MondrianOptimizer:
        """Read an optimizer that `save` wrote. Load only files that you trust: this is pickle.

        Raises
        ------
        TypeError
            If the file holds something else.
        """
        loaded = pickle.loads(Path(path).read_bytes())
        if not isinstance(loaded, cls):
            raise TypeError(f"{path} holds a {type(loaded).__name__}, not a {cls.__name__}.")
        return loaded

    def tell_rows(
        self, rows: FloatArray, values: FloatArray, feasible: BoolArray | None = None
    ) -> None:
        """Report trials as rows of the unit cube, for frameworks that encode by themselves.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Encoded points. Numeric entries may lie below 0 or above 1, for trials from before a
            range was narrowed; suggestions stay within the space.
        values : float64 array of shape (m,)
            Their values; NaN for trials that failed.
        feasible : bool array of shape (m,) or None, default=None
            Which of them satisfy the constraints that `suggest` gets; None is all.
        """
        allowed = np.ones(len(rows), dtype=bool) if feasible is None else feasible
        for row, value, good in zip(rows, values, allowed, strict=True):
            self._tell_row(row, float(value), bool(good))

    def suggest(
        self,
        pending: FloatArray,
        index: int,
        within: SearchSpace | None = None,
        log_probability: Score | None = None,
    ) -> Params:
        """Suggest a trial without keeping account of it, for frameworks that do.

        Parameters
        ----------
        pending : float64 array of shape (k, d)
            Encoded points of the trials that are running now.
        index : int
            Names the random draw: an optimizer in the same state suggests the same trial for the
            same index. Quasi-random first trials are the points of a sequence with this index.
        within : SearchSpace or None, default=None
            Part of the space to stay in (see :class:`RestrictedSpace`); None is all of it.
        log_probability : callable or None, default=None
            Logarithm of the probability that rows of shape (m, d) satisfy constraints on other
            outcomes; None if there are none.

        Returns
        -------
        dict
            Active parameters by name.
        """
        return self.space.from_unit(self._suggest(list(pending), index, within, log_probability))

    def exclude_row(self, row: FloatArray) -> None:
        """Suggest no trial with the values of an encoded point, whatever fills its gaps."""
        self._epochs.trials.exclude(row)

    def accepts(self, row: FloatArray) -> bool:
        """Whether an encoded point has all the parameters it must have."""
        if self._allow_missing:
            return not bool(np.isnan(row).all())
        return self.is_complete(row)

    def is_complete(self, row: FloatArray) -> bool:
        """Whether an encoded point has all the parameters that are active."""
        try:
            self.space.from_unit(row)
        except ValueError:
            return False
        return True

    def _tell_row(self, row: FloatArray, value: float, feasible: bool = True) -> None:
        for i, waiting in enumerate(self._pending):
            # A trial may lack what was asked for it.
            if np.where(np.isnan(row), np.nan, waiting).tobytes() == row.tobytes():
                del self._pending[i]
                break
        if math.isnan(value):
            self._epochs.fail(row)
        else:
            self._epochs.tell(row, self._sign * value, feasible)

    def _suggest(
        self,
        pending: list[FloatArray],
        index: int,
        within: SearchSpace | None = None,
        log_probability: Score | None = None,
    ) -> FloatArray:
        running = {row.tobytes() for row in pending}
        return self._epochs.current.suggest(
            self.space if within is None else within,
            np.array(pending).reshape(-1, self.space.n_dimensions),
            index,
            np.random.default_rng([*self._ask_entropy, index]),
            lambda row: row.tobytes() in running or self._epochs.trials.is_known(row),
            log_probability,
        )

    def _new_search(self, trials: Trials) -> Search:
        space = self.space
        may_be_absent = self._allow_missing or any(
            parameter.condition is not None for parameter in space.values()
        )
        search_seed = self._model_seed.spawn(1)[0]
        *seeds, shift_seed = search_seed.spawn(len(self._portfolio.arms) + 1)
        arms = []
        for arm, seed in zip(self._portfolio.arms, seeds, strict=True):
            options = dict(arm.options)
            if self._n_estimators is not None:
                options["n_estimators"] = self._n_estimators
            surrogate = get_surrogate(self._surrogate)(
                space.n_choices, may_be_absent, seed, **options
            )
            arms.append((ObjectiveModel(surrogate, trials, arm.power), arm.acquisitions))
        shift = np.random.default_rng(shift_seed).random(space.n_dimensions)
        return Search(trials, arms, self._n_startup_trials, self._n_candidates, shift)

    def _encode(self, params: Mapping[str, object]) -> FloatArray:
        row = self.space.to_unit(params)
        if not self._allow_missing:
            # Raises where an active parameter is missing.
            self.space.from_unit(row)
        return row

    def _decode(self, row: FloatArray) -> Params:
        known = ~np.isnan(row)
        filled = np.where(known, row, 0.0)
        decoded = self.space.from_unit(filled)
        return {
            name: value for name, value in decoded.items() if known[self.space.names.index(name)]
        }

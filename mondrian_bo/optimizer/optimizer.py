"""The optimizer: ask and tell over a search space, without a framework."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, SupportsFloat, TypeAlias, overload

import numpy as np

from mondrian_bo.acquisitions.feasibility import Score
from mondrian_bo.array_types import BoolArray, FloatArray
from mondrian_bo.optimizer.portfolio import AcquisitionChoice, check_settings
from mondrian_bo.optimizer.restarts import RestartingSearch
from mondrian_bo.optimizer.search import SearchFactory
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.surrogates.registry import SurrogateName

Params: TypeAlias = dict[str, Any]
"""Values of the active parameters by name."""

Direction: TypeAlias = Literal["minimize", "maximize"]
"""Direction in which values are better."""


class MondrianOptimizer:
    """Sequential optimisation of an expensive function with a probabilistic model.

    Parameters
    ----------
    space : SearchSpace
        The parameters and their ranges.
    direction : {"minimize", "maximize"}, default="minimize"
        Direction in which values are better.
    surrogate : {"gaussian_process", "forest", "amf", "kernel"}, default="gaussian_process"
        The model. "gaussian_process" is one Gaussian process up to 200 trials, and beyond them a
        Mondrian forest with Gaussian processes in its leaves. "forest" is the forest of
        Lakshminarayanan2016, whose nodes predict with the empirical moments of their values
        (section 5.3). "amf" is an aggregated Mondrian forest (Mourtada2021). "kernel" is ridge
        regression with the Mondrian kernel (Balog2016).
    acquisition : str, Acquisition or Portfolio, default="auto"
        The score that suggestions maximise: "ucb", "ei", "log_ei", "pi", "thompson", an instance
        of one, or a :class:`mondrian_bo.optimizer.portfolio.Portfolio`. "auto" draws one of several
        acquisitions for each trial; with Gaussian processes the search also restarts when it has
        collapsed on its incumbent.
    n_startup_trials : int, default=10
        Number of quasi-random first trials.
    n_estimators : int or None, default=None
        Number of trees or partitions; None is 2 with Gaussian processes, 50 with the kernel and 10
        otherwise.
    n_candidates : int, default=600
        Number of candidates to score for each suggestion.
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
    `tell` is O(1). The next `ask` learns new trials at O(log n) each, and its own cost grows with
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
        direction: Direction = "minimize",
        surrogate: SurrogateName = "gaussian_process",
        acquisition: AcquisitionChoice = "auto",
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
        settings = check_settings(
            surrogate, acquisition, n_startup_trials, n_estimators, n_candidates
        )
        self.space = space
        self.direction: Direction = direction
        self._surrogate = surrogate
        self._sign = 1.0 if direction == "maximize" else -1.0
        self._allow_missing = allow_missing
        model_seed, ask_seed = np.random.SeedSequence(seed).spawn(2)
        self._ask_entropy = [int(word) for word in ask_seed.generate_state(4)]
        may_be_absent = allow_missing or any(p.condition is not None for p in space.values())
        self._search = RestartingSearch(
            SearchFactory(space, settings, may_be_absent, model_seed),
            space.is_categorical,
            space.grid_sizes == 0,
            settings.n_startup_trials,
            settings.portfolio.restarts,
        )
        self._n_asked = 0
        self._pending = np.empty((0, space.n_dimensions))

    def __repr__(self) -> str:
        return (
            f"MondrianOptimizer(direction={self.direction!r}, surrogate={self._surrogate!r}, "
            f"n_trials={self.n_trials}, parameters={list(self.space.names)})"
        )

    @property
    def n_trials(self) -> int:
        """Number of trials told, failed ones not counted."""
        return self._search.n_successes

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
        self._check_told("There is no best trial")
        row, value = self._search.trials.best()
        return self._decode(row), self._sign * value

    @overload
    def ask(self, n: None = None) -> Params: ...

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
            params = self.suggest(self._pending, self._n_asked)
            self._n_asked += 1
            # Decoding and encoding may differ by a rounding error. The stored row is the one that
            # `tell` will get.
            row = self.space.to_unit(params)
            self._pending = np.concatenate([self._pending, row[None]])
            asked.append(params)
        return asked[0] if n is None else asked

    @overload
    def tell(self, params: Mapping[str, object], value: SupportsFloat) -> None: ...

    @overload
    def tell(
        self,
        params: Sequence[Mapping[str, object]],
        value: Sequence[SupportsFloat] | FloatArray,
    ) -> None: ...

    def tell(
        self,
        params: Mapping[str, object] | Sequence[Mapping[str, object]],
        value: SupportsFloat | Sequence[SupportsFloat] | FloatArray,
    ) -> None:
        """Report a trial, asked for or not, or several.

        Parameters
        ----------
        params : mapping, or sequence of mappings
            Parameters by name.
        value : float, or sequence of float
            Their values. Infinities are very good or very bad values. NaN means that the trial
            failed: it is not learnt, and its exact point is suggested again only when no other is
            left. If the two nearest trials failed as well, it is learnt with the median value.

        Raises
        ------
        KeyError, TypeError, ValueError
            If parameters or values are not what the space describes; then nothing is learnt.
        """
        values = _checked_values(value)
        rows = self._encode(params)
        if len(rows) != len(values):
            raise ValueError(f"Got {len(rows)} trials, but {len(values)} values.")
        self.tell_rows(rows, values)
        if self._allow_missing:
            # With any value of the parameters that it lacks, a trial is the same trial.
            self._search.trials.exclude(rows[~np.isnan(values)])

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
        self._check_told("There is nothing to predict from")
        return self.predict_rows(self._encode(params))

    def predict_rows(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict as `predict` does, at encoded points of shape (m, d)."""
        mean, std = self._search.whole.outcome_moments(rows)
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
        """Report trials as rows of the unit cube, for adapters that encode parameters themselves.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Encoded points. Numeric entries are below 0 or above 1 where a trial is older than the
            present, narrower range. Suggestions stay within the space.
        values : float64 array of shape (m,)
            Their values; NaN for trials that failed.
        feasible : bool array of shape (m,) or None, default=None
            Which of them satisfy the constraints that `suggest` gets; None is all.
        """
        for row in rows if len(self._pending) else ():
            # A trial may lack parameters that were suggested.
            told = ((self._pending == row) | np.isnan(row)).all(axis=1)
            self._pending = np.delete(self._pending, np.flatnonzero(told)[:1], axis=0)
        self._search.tell(rows, self._sign * values, feasible)

    def suggest(
        self,
        pending: FloatArray,
        index: int,
        within: SearchSpace | None = None,
        log_probability: Score | None = None,
    ) -> Params:
        """Suggest a trial without storing it as pending, for adapters that do so themselves.

        Parameters
        ----------
        pending : float64 array of shape (k, d)
            Encoded points of the trials that are running now.
        index : int
            Number of the random draw: an optimizer in the same state suggests the same trial for
            the same index. Quasi-random first trials are the points of a sequence at this index.
        within : SearchSpace or None, default=None
            Part of the space that contains the suggestion (see :class:`RestrictedSpace`); None is
            all of it.
        log_probability : callable or None, default=None
            Logarithm of the probability that rows of shape (m, d) satisfy constraints on other
            outcomes; None if there are none.

        Returns
        -------
        dict
            Active parameters by name.
        """
        running = {row.tobytes() for row in pending}
        row = self._search.current.suggest(
            self.space if within is None else within,
            pending,
            index,
            np.random.default_rng([*self._ask_entropy, index]),
            partial(self._search.trials.is_known, running=running),
            log_probability,
        )
        return self.space.from_unit(row)

    def exclude_rows(self, rows: FloatArray) -> None:
        """Rule out all trials with the values of encoded points (m, d); NaN matches every value."""
        self._search.trials.exclude(rows)

    def accepts(self, rows: FloatArray) -> BoolArray:
        """Whether encoded points (m, d) have all required parameters, shape (m,)."""
        if self._allow_missing:
            return np.asarray(~np.isnan(rows).all(axis=1))
        return self.space.is_complete(rows)

    def _encode(self, params: Mapping[str, object] | Sequence[Mapping[str, object]]) -> FloatArray:
        """Return the rows of one or several points, shape (m, d)."""
        many = [params] if isinstance(params, Mapping) else list(params)
        rows = np.empty((len(many), self.space.n_dimensions))
        for i, one in enumerate(many):
            rows[i] = self.space.to_unit(one)
            if not self._allow_missing:
                # Raises where an active parameter is missing.
                self.space.from_unit(rows[i])
        return rows

    def _check_told(self, problem: str) -> None:
        if self.n_trials == 0:
            raise ValueError(f"{problem}: no trial has been told yet.")

    def _decode(self, row: FloatArray) -> Params:
        known = ~np.isnan(row)
        filled = np.where(known, row, 0.0)
        decoded = self.space.from_unit(filled)
        return {
            name: value for name, value in decoded.items() if known[self.space.names.index(name)]
        }


def _checked_values(value: object) -> FloatArray:
    """Return one or several values as an array of shape (m,)."""
    numbers = []
    for one in np.atleast_1d(np.asarray(value)):
        try:
            if isinstance(one, str | bytes):
                raise TypeError
            numbers.append(float(one))
        except (TypeError, ValueError):
            raise TypeError(
                f"`value` must be a number or a sequence of numbers, got {value!r}."
            ) from None
    return np.array(numbers, dtype=np.float64)

"""The optimizer: ask and tell over a search space, with no framework around it."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.acquisitions import (
    Acquisition,
    LogExpectedImprovement,
    ThompsonSampling,
    UpperConfidenceBound,
    get_acquisition,
)
from mondrian_bo.acquisitions.maximize import maximize, spread
from mondrian_bo.objective_model import ObjectiveModel
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.surrogates.registry import SURROGATES

FloatArray = NDArray[np.float64]
Params = dict[str, object]

AUTO: tuple[Acquisition, ...] = (
    UpperConfidenceBound(),
    LogExpectedImprovement(0.01),
    LogExpectedImprovement(0.1),
)
"""What ``acquisition="auto"`` draws from: one rule alone keeps polishing one basin."""


class MondrianOptimizer:
    """Sequential optimisation of an expensive function with a Mondrian forest.

    Parameters
    ----------
    space : SearchSpace
        Where to search.
    direction : {"minimize", "maximize"}, default="minimize"
        What is wanted of the values.
    surrogate : {"forest", "amf"}, default="forest"
        The model: "forest" is a Mondrian forest whose nodes predict with the empirical moments of
        their values (paper 004, section 5.3), "amf" an aggregated Mondrian forest (paper 003).
    acquisition : str or Acquisition, default="auto"
        How to choose the next trial: "auto" (one of several rules, drawn for each trial), "ucb",
        "ei", "log_ei", "pi", "thompson", or an instance of one.
    n_startup_trials : int, default=10
        So many first trials are quasi-random.
    n_estimators : int, default=10
        Number of trees.
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
        surrogate: str = "forest",
        acquisition: str | Acquisition = "auto",
        n_startup_trials: int = 10,
        n_estimators: int = 10,
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
        self._acquisitions = AUTO if acquisition == "auto" else (get_acquisition(acquisition),)
        self._n_startup_trials = n_startup_trials
        self._n_candidates = n_candidates
        self._allow_missing = allow_missing
        model_seed, ask_seed = np.random.SeedSequence(seed).spawn(2)
        self._ask_entropy = [int(word) for word in ask_seed.generate_state(4)]
        may_be_absent = allow_missing or any(p.condition is not None for p in space.values())
        self._model = ObjectiveModel(
            SURROGATES[surrogate](
                space.n_choices, may_be_absent, model_seed, n_estimators=n_estimators
            ),
            space.n_dimensions,
        )
        self._n_asked = 0
        self._pending: list[FloatArray] = []

    @property
    def n_trials(self) -> int:
        """Number of trials told, failed ones not counted."""
        return self._model.n_trials

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
        row, value = self._model.best_trial()
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
            it is not learnt, but its exact point is not suggested again while others are left.

        Raises
        ------
        KeyError, TypeError, ValueError
            If parameters or values are not what the space describes; then nothing is learnt.
        """
        many = [params] if isinstance(params, Mapping) else list(params)
        several = value if isinstance(value, Sequence | np.ndarray) else [value]
        values = [float(v) for v in several]
        if len(many) != len(values):
            raise ValueError(f"Got {len(many)} trials, but {len(values)} values.")
        rows = [self._encode(one) for one in many]
        for row, number in zip(rows, values, strict=True):
            self._tell_row(row, number)

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
        mean, std = self._model.outcome_moments(rows.reshape(-1, self.space.n_dimensions))
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

    def tell_rows(self, rows: FloatArray, values: FloatArray) -> None:
        """Report trials as rows of the unit cube, for frameworks that encode by themselves.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Encoded points. Numeric entries may lie below 0 or above 1, for trials from before a
            range was narrowed; suggestions stay within the space.
        values : float64 array of shape (m,)
            Their values; NaN for trials that failed.
        """
        for row, value in zip(rows, values, strict=True):
            self._tell_row(row, float(value))

    def suggest(self, pending: FloatArray, index: int) -> Params:
        """Suggest a trial without keeping account of it, for frameworks that do.

        Parameters
        ----------
        pending : float64 array of shape (k, d)
            Encoded points of the trials that are running now.
        index : int
            Names the random draw: an optimizer in the same state suggests the same trial for the
            same index. Quasi-random first trials are the points of a sequence with this index.

        Returns
        -------
        dict
            Active parameters by name.
        """
        return self.space.from_unit(self._suggest(list(pending), index))

    def accepts(self, row: FloatArray) -> bool:
        """Whether an encoded point has all the parameters it must have."""
        if self._allow_missing:
            return not bool(np.isnan(row).all())
        try:
            self.space.from_unit(row)
        except ValueError:
            return False
        return True

    def _tell_row(self, row: FloatArray, value: float) -> None:
        for i, waiting in enumerate(self._pending):
            if waiting.tobytes() == row.tobytes():
                del self._pending[i]
                break
        if math.isnan(value):
            self._model.avoid(row)
        else:
            self._model.tell(row, self._sign * value)

    def _suggest(self, pending: list[FloatArray], index: int) -> FloatArray:
        rng = np.random.default_rng([*self._ask_entropy, index])
        model = self._model
        running = {row.tobytes() for row in pending}

        def is_taken(row: FloatArray) -> bool:
            return row.tobytes() in running or model.is_known(row)

        if self.n_trials == 0 or self.n_trials + len(pending) < self._n_startup_trials:
            shift = np.random.default_rng(self._ask_entropy).random(self.space.n_dimensions)
            rows = spread(self.space, index, 1, shift)
            if is_taken(rows[0]):
                # A space of few points repeats them.
                rows = maximize(
                    lambda some: rng.random(len(some)),
                    self.space,
                    rows,
                    is_taken,
                    rng,
                    self._n_candidates,
                )[None]
            return np.asarray(rows[0])
        acquisition = self._acquisitions[rng.integers(len(self._acquisitions))]
        with model.pending(np.array(pending).reshape(-1, self.space.n_dimensions)):
            if isinstance(acquisition, ThompsonSampling):
                score = model.draw(rng)
            else:
                incumbent = model.value_to_beat()
                # Late in a search most predictions are of near neighbours of the best trial, and
                # calibration narrows the variances to what they deserve. That sharpens the choice
                # among improvements; an upper confidence bound would stop exploring.
                calibrated = not isinstance(acquisition, UpperConfidenceBound)

                def score(rows: FloatArray) -> FloatArray:
                    return acquisition(model.predict(rows, calibrated), incumbent)

            return maximize(
                score,
                self.space,
                model.incumbents(),
                is_taken,
                rng,
                self._n_candidates,
            )

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


def check_settings(
    surrogate: str,
    acquisition: str | Acquisition,
    n_startup_trials: int,
    n_estimators: int,
    n_candidates: int,
) -> None:
    """Check the settings that the optimizer shares with its adapters.

    Raises
    ------
    ValueError
        If one of them is not as :class:`MondrianOptimizer` describes.
    """
    if surrogate not in SURROGATES:
        raise ValueError(f"`surrogate` must be one of {list(SURROGATES)}, got {surrogate!r}.")
    if acquisition != "auto":
        get_acquisition(acquisition)
    for name, number, smallest in (
        ("n_startup_trials", n_startup_trials, 0),
        ("n_estimators", n_estimators, 1),
        ("n_candidates", n_candidates, 1),
    ):
        if not isinstance(number, int) or isinstance(number, bool) or number < smallest:
            raise ValueError(f"`{name}` must be an integer >= {smallest}, got {number!r}.")

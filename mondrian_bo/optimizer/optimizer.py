"""The optimizer: ask and tell over a search space, without a framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, SupportsFloat, overload

import numpy as np

from mondrian_bo.optimizer.row_optimizer import Params
from mondrian_bo.optimizer.search.portfolio import AcquisitionChoice
from mondrian_bo.optimizer.shared.transactions import transaction
from mondrian_bo.optimizer.shared.trials import KEY_DIGITS
from mondrian_bo.optimizer.shared.validation import (
    Direction,
    check_constraints,
    check_directions,
    check_values,
    count_trials,
)
from mondrian_bo.optimizer.stored_optimizer import StoredOptimizer
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.registry import SurrogateName

if TYPE_CHECKING:
    from mondrian_bo.optimizer.earlier_studies.earlier_trials import EarlierTrials, ToldTrials
    from mondrian_bo.optimizer.fidelities.fidelity import FidelityChoice


class MondrianOptimizer(StoredOptimizer):
    """Sequential optimisation of an expensive function with a probabilistic model.

    Parameters
    ----------
    space : SearchSpace
        The parameters and their ranges.
    direction : {"minimize", "maximize"}, default="minimize"
        Direction in which values are better.
    surrogate : {"gaussian_process", "forest", "amf", "kernel"}, default="gaussian_process"
        The model. "gaussian_process" is one Gaussian process up to 200 trials, and beyond them a
        Mondrian forest with Gaussian processes in its leaves; see the notes for rugged values.
        "forest" is the forest of
        Lakshminarayanan2016 with hyper-parameters that maximise its leave-one-out density. "amf" is
        an aggregated Mondrian forest (Mourtada2021). "kernel" is ridge regression with the Mondrian
        kernel (Balog2016).
    acquisition : str, Acquisition or Portfolio, default="auto"
        The score that suggestions maximise: "ucb", "ei", "log_ei", "pi", "thompson", an instance
        from :mod:`mondrian_bo.acquisitions`, or a :class:`mondrian_bo.optimizer.Portfolio`. "auto"
        draws one of several acquisitions for each trial, and makes some suggestions without an
        acquisition, see the notes.
    n_startup_trials : int or None, default=None
        Number of first trials without the model: the middle of the space, then quasi-random points.
        None is 4 with Gaussian processes and parameters that are all active, and 10 otherwise, with
        a fidelity, too.
    n_estimators : int or None, default=None
        Number of trees or partitions; None is 2 with Gaussian processes, 50 with the kernel and 10
        otherwise. A forest for rugged values always has 10.
    n_candidates : int, default=600
        Number of candidates to score for each suggestion; fewer in conditional spaces of more than
        64 parameters, and with more than two objectives and constraints. Without constraints, half
        of them beyond 200 trials and, with one objective and no `is_valid`, a quarter beyond 2,000;
        with "forest" and "auto", and with a forest for rugged values, a quarter at any number.
    seed : int, sequence of int or None, default=None
        Seed of all randomness; None takes entropy from the system.
    allow_missing : bool, default=False
        Whether trials may lack parameters that are active by the space's conditions, as happens
        when the conditions are not known. A trial has at least one parameter.
    directions : sequence of {"minimize", "maximize"} or None, default=None
        Directions of one to four objectives, instead of `direction`. With several, suggestions
        maximise the expected hypervolume improvement, in logarithms, with "ei", "log_ei" and "pi"
        as with "auto". "ucb", "thompson" and a user's own acquisition give a value of each
        objective, and suggestions maximise the hypervolume that these values add.
    constraints : sequence of str, default=()
        Names of constraints. A trial is feasible if the values of all its constraints are at most
        0. A model of each gives the probability that a candidate is feasible.
    reference_point : sequence of float or None, default=None
        Values of the objectives that are just acceptable: only better ones count as an
        improvement. None, or NaN for one of them, follows the Pareto front. With one objective it
        makes no difference.
    is_valid : callable or None, default=None
        Which points may be suggested, where that is known without a trial: a function of the
        active parameters by name (a dict) that returns True or False. A ``KeyError`` of an
        inactive parameter counts as True, so ``lambda p: p["depth"] * p["width"] <= 64`` holds in
        branches without depth. Trials that are told need not be valid: the optimizer learns an
        invalid trial as any other, and `best` and `pareto_front` may return it. A saved file does
        not hold the function, and `load` is given it again.
    warm_start : sequence of (params, values) or EarlierTrials, default=None
        Trials of earlier studies of the same or similar spaces, as `tell` takes them. They count as
        far as they predict this search's trials, see
        :mod:`mondrian_bo.optimizer.earlier_studies.earlier_mean`. Parameters are matched by name,
        and those that are missing or new are no error. A parameter
        whose earlier values have no place in the space is ignored, with a warning.
    fidelity : str or mapping of str to float, default=None
        Name of a numeric parameter that says how exact and how expensive a trial is, such as a
        number of epochs. Its target is the upper end of its range, or the one in the mapping, as in
        ``{"n_epochs": 100}``. The search is for the best point at the target, and runs other trials
        at cheaper fidelities, see :mod:`mondrian_bo.optimizer.fidelities.fidelity_search`. It does
        not restart, and needs a single objective without earlier studies. `save` refuses it.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.
    KeyError
        If the space has no parameter of the name `fidelity`.

    Notes
    -----
    `tell` is O(1). The next `ask` learns new trials at O(log n) each, and its own cost grows with
    the logarithm of the number of trials.

    With ``acquisition="auto"``, one objective, no constraints and no fidelity, some suggestions do
    not maximise an acquisition of the model. The incumbent is the best trial.

    - Half of the suggestions maximise a draw from a quadratic around the incumbent, where that
      predicts well. This holds for the surrogates "gaussian_process" and "forest"; the other
      kinds of suggestions are made with "gaussian_process" alone.
    - After many trials, a quarter of the suggestions are steps of an evolution strategy: in a space
      of d parameters, after 16 d trials and after 8 * 2^d trials, or 300 if that is less. With
      `is_valid` there are none.
    - While several trials have the best value, as with accuracies, half of the suggestions are
      points among the good trials, far from each of them.
    - With "gaussian_process", and without earlier studies, a Mondrian forest with constant leaves
      takes the place of the process while the process predicts left-out values badly, from 38 to
      200 trials. Predictions remain those of the process.

    With "gaussian_process" and with "forest", the search also restarts when it suggests points near
    its incumbent only, without a gain.

    Several threads may use one optimizer; one call runs at a time. An exception at any moment, as
    from Ctrl-C, leaves the optimizer usable: the interrupted call is undone by the next one. Models
    then learn their trials again, in the same steps, and the next suggestion is the one that the
    interrupted call would have made. Beyond a thousand steps they learn the former trials at once,
    which takes less time, and suggestions may differ.

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
        n_startup_trials: int | None = None,
        n_estimators: int | None = None,
        n_candidates: int = 600,
        seed: int | Sequence[int] | None = None,
        allow_missing: bool = False,
        directions: Sequence[Direction] | None = None,
        constraints: Sequence[str] = (),
        reference_point: Sequence[float] | None = None,
        is_valid: Callable[[Params], bool] | None = None,
        warm_start: Sequence[EarlierTrials | ToldTrials] | None = None,
        fidelity: FidelityChoice | None = None,
    ) -> None:
        encoded: Sequence[EarlierTrials] = ()
        if warm_start:
            # Loaded here: few searches have earlier studies.
            from mondrian_bo.optimizer.earlier_studies.earlier_trials import encode_told

            encoded = encode_told(space, warm_start)
        super().__init__(
            space,
            directions=check_directions(direction, directions),
            surrogate=surrogate,
            acquisition=acquisition,
            n_startup_trials=n_startup_trials,
            n_estimators=n_estimators,
            n_candidates=n_candidates,
            seed=seed,
            allow_missing=allow_missing,
            reference_point=reference_point,
            is_valid=is_valid,
            constraints=constraints,
            warm_start=encoded,
            fidelity=fidelity,
        )

    def __repr__(self) -> str:
        one, many = self.directions[0], self.directions
        goal = f"direction={one!r}" if len(many) == 1 else f"directions={list(many)!r}"
        return (
            f"MondrianOptimizer({goal}, surrogate={self._surrogate!r}, "
            f"n_trials={self.n_trials}, parameters={list(self.space.names)})"
        )

    @property
    def direction(self) -> Direction:
        """Direction of the first objective."""
        return self.directions[0]

    @property
    @transaction
    def pending(self) -> list[Params]:
        """Parameters asked for and not told yet, as `ask` gave them and in its order."""
        return self._pending_params()

    @property
    def best(self) -> tuple[Params, float]:
        """Parameters and value of the best feasible trial told; with a fidelity, at the target.

        The parameters are decoded from the row of the trial, which is all that is kept. The last
        digits of a float may differ from those told, above all with ``log=True``.

        Raises
        ------
        ValueError
            If no trial has been told, if none is feasible (or at the target fidelity), or if there
            are several objectives.
        """
        with self._lock:
            self._check_told("There is no best trial")
            trials = self._search.trials
            if trials.n_objectives > 1:
                raise ValueError("`best` needs a single objective; `pareto_front` serves several.")
            is_best = trials.front()
            if not is_best.any():
                which = "feasible" if self._fidelity is None else "feasible at the target fidelity"
                raise ValueError(f"There is no best trial: no trial told so far is {which}.")
            (row,), (value,) = trials.rows[is_best], trials.values[is_best]
            return self._decode(row), float(self._signs[0] * value)

    @transaction
    def pareto_front(self) -> list[tuple[Params, FloatArray]]:
        """Return parameters and values of the feasible trials that no other one dominates.

        Returns
        -------
        list of (dict, float64 array of shape (K,))
            In the order of telling; of a single objective the best trial. Empty without a feasible
            trial. Parameters are decoded as those of `best`.
        """
        trials = self._search.trials
        front = trials.front()
        return [
            (self._decode(row), np.asarray(self._signs * value))
            for row, value in zip(trials.rows[front], trials.values[front], strict=True)
        ]

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
            If `n` is not positive, or if `is_valid` refuses all of some thousands of points.
        TypeError
            If `n` is no integer, or `is_valid` returns something else than True or False. Its own
            exceptions pass through, and nothing is asked for.
        """
        if n is not None and not isinstance(n, int | np.integer):
            raise TypeError(f"`n` must be a positive integer or None, got {n!r}.")
        if n is not None and n < 1:
            raise ValueError(f"`n` must be a positive integer or None, got {n!r}.")
        asked = self._ask(1 if n is None else n)
        return asked[0] if n is None else asked

    @transaction
    def _ask(self, n: int) -> list[Params]:
        asked: list[Params] = []
        pending, as_asked = self._pending, self._known_params()
        for i in range(n):
            params = self.suggest(pending, self._n_asked + i)
            # Decoding and encoding may differ by a rounding error. The stored row is the one that
            # `tell` will get.
            row = self.space.to_unit(params)
            pending = np.concatenate([pending, row[None]])
            as_asked[row.tobytes()] = params.copy()
            asked.append(params)
        self._as_asked = as_asked
        # The last step: nothing is asked for if this is not reached.
        self._pending, self._n_asked = pending, self._n_asked + n
        return asked

    def tell(
        self,
        params: Mapping[str, object] | Sequence[Mapping[str, object]],
        value: SupportsFloat | Sequence[object] | FloatArray,
        constraints: Mapping[str, SupportsFloat] | Sequence[object] | FloatArray | None = None,
        cost: SupportsFloat | Sequence[object] | FloatArray | None = None,
    ) -> None:
        """Report a trial, asked for or not, or several.

        Parameters
        ----------
        params : mapping, or sequence of m mappings
            Parameters by name.
        value : float, or sequence of float
            The value of the trial, or those of m trials. With K objectives K values, or an array
            of shape (m, K). Infinities are very good or very bad values. NaN means that the trial
            failed: it is not learnt, and its exact point is suggested again only when no other is
            left. If the two nearest points failed as well, it is learnt with the median value, or
            with the worst one if more than two thirds of the points failed; not so while failures
            look like accidents, because trials next to failed ones fail no more often than others.
            Attempts at one point count once, and not at all after one that is complete.
        constraints : mapping, sequence of float, or a sequence of m of them, default=None
            Values of the constraints, by name or in the order of the optimizer's `constraints`.
            Those missing or NaN are unknown, and count as satisfied for `best` and `pareto_front`.
            A trial that failed may have some.
        cost : float, or sequence of m floats, default=None
            With a fidelity: what the trial cost, in any unit, > 0; NaN where unknown. Without
            any, the cost is taken to be proportional to the fidelity.

        Raises
        ------
        KeyError, TypeError, ValueError
            If parameters or values are not what the space, the directions and the constraints
            describe; then nothing is learnt.
        """
        n_trials = count_trials(params)
        values = check_values(value, n_trials, len(self.directions))
        known = check_constraints(constraints, n_trials, self.constraints)
        costs = None
        if cost is not None:
            costs = self._check_cost(cost, n_trials)
        rows = self._encode(params)
        self._tell(rows, values, known, costs)

    def _check_cost(self, cost: object, n_trials: int | None) -> FloatArray:
        if self._fidelity is None:
            raise ValueError("`cost` needs an optimizer with a `fidelity`.")
        costs = check_values(cost, n_trials, 1).ravel()
        if not (np.isnan(costs) | ((costs > 0.0) & np.isfinite(costs))).all():
            raise ValueError(f"`cost` must be positive and finite, or NaN, got {cost!r}.")
        return costs

    @transaction
    def _tell(
        self,
        rows: FloatArray,
        values: FloatArray,
        constraints: FloatArray,
        costs: FloatArray | None,
    ) -> None:
        self.tell_rows(rows, values, constraints, costs=costs)
        for row in rows if len(self._pending) else ():
            # A trial may lack parameters that were suggested.
            is_same = np.abs(self._pending - row) <= 10.0**-KEY_DIGITS
            told = (is_same | np.isnan(row)).all(axis=1)
            self._pending = np.delete(self._pending, np.flatnonzero(told)[:1], axis=0)
        if self._allow_missing:
            # With any value of the parameters that it lacks, a trial is the same trial.
            self._search.trials.exclude(rows[~np.isnan(values).any(axis=1)])

    def predict(
        self, params: Mapping[str, object] | Sequence[Mapping[str, object]]
    ) -> tuple[FloatArray, FloatArray]:
        """Predict the mean and standard deviation of the objectives.

        Parameters
        ----------
        params : mapping, or sequence of mappings
            m points.

        Returns
        -------
        mean, std : float64 arrays of shape (m,), or (m, K) with K > 1 objectives
            In the units of the objectives.

        Raises
        ------
        KeyError, TypeError, ValueError
            If no trial has been told, or a parameter is missing, unknown or out of its range.
        """
        self._check_told("There is nothing to predict from")
        mean, std = self.predict_rows(self._encode(params))
        n_objectives = len(self.directions)
        if n_objectives == 1:
            return mean[:, 0], std[:, 0]
        return mean[:, :n_objectives], std[:, :n_objectives]

    def predict_constraints(
        self, params: Mapping[str, object] | Sequence[Mapping[str, object]]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Predict the constraints.

        Parameters
        ----------
        params : mapping, or sequence of mappings
            m points.

        Returns
        -------
        mean, std : float64 arrays of shape (m, q)
            In the units of the constraints; NaN for those without a known value.
        probability : float64 array of shape (m,)
            That all of them hold; NaN while none of them has a known value.
        """
        rows = self._encode(params)
        mean, std = np.full((2, len(rows), len(self.constraints)), np.nan)
        if self._constraints is not None:
            mean[:], std[:] = (one[:, len(self.directions) :] for one in self.predict_rows(rows))
        probability = np.exp(self.log_feasibility(rows))
        if self.constraints and np.isnan(mean).all():
            probability = np.full(len(rows), np.nan)
        return mean, std, probability

    def _encode(self, params: Mapping[str, object] | Sequence[Mapping[str, object]]) -> FloatArray:
        """Return the rows of one or several points, shape (m, d)."""
        count_trials(params)
        many = [params] if isinstance(params, Mapping) else list(params)
        rows = np.empty((len(many), self.space.n_dimensions))
        for i, one in enumerate(many):
            rows[i] = self.space.to_unit(one)
            if self._allow_missing and np.isnan(rows[i]).all():
                raise ValueError(
                    f"`params` must have at least one of the parameters {list(self.space.names)}, "
                    f"got {dict(one)!r}."
                )
            if not self._allow_missing and np.isnan(rows[i]).any():
                self._check_missing(rows[i], one)
        return rows

    def _check_missing(self, row: FloatArray, params: Mapping[str, object]) -> None:
        # An inactive parameter becomes NaN again.
        filled = self.space.snap(np.nan_to_num(row[None]))[0]
        missing = np.isnan(row) & ~np.isnan(filled)
        if missing.any():
            lacking = [self.space.names[j] for j in np.flatnonzero(missing)]
            # Without its parent a parameter is neither active nor inactive.
            conditions = [self.space[name].condition for name in lacking]
            names = [
                name
                for name, condition in zip(lacking, conditions, strict=True)
                if condition is None or condition.parent in params
            ]
            raise ValueError(
                f"`params` must have all active parameters, and lacks {names}: got "
                f"{dict(params)!r}."
            )

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

"""The optimizer over encoded points, with objectives, constraints and tracked metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np

from mondrian_bo.acquisitions.base import Acquisition, Score
from mondrian_bo.optimizer.constraints.constraints import Constraints
from mondrian_bo.optimizer.maximization.valid_rows import ValidRows
from mondrian_bo.optimizer.models.known_noise import KnownNoise
from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.optimizer.models.outcome_models import Moments
from mondrian_bo.optimizer.optimizer_state import OptimizerState
from mondrian_bo.optimizer.search.portfolio import Arm, SearchOptions, check_settings
from mondrian_bo.optimizer.search.request import Request
from mondrian_bo.optimizer.search.restarts import RestartingSearch
from mondrian_bo.optimizer.search.search_factory import SearchParts, columns_of
from mondrian_bo.optimizer.search_kinds import new_factory, new_fidelity
from mondrian_bo.optimizer.shared.transactions import Transactional, transaction
from mondrian_bo.optimizer.shared.trials import decoding_rounds, rounded
from mondrian_bo.optimizer.shared.validation import (
    Direction,
    check_directions,
    check_reference,
    seed_sequence,
)
from mondrian_bo.search_space import RestrictedSpace, SearchSpace
from mondrian_bo.shared.argument_checks import check_callable, check_flag
from mondrian_bo.shared.array_types import BoolArray, FloatArray

if TYPE_CHECKING:
    from mondrian_bo.optimizer.earlier_studies.earlier_trials import EarlierTrials
    from mondrian_bo.optimizer.fidelities.cost_model import CostModel
    from mondrian_bo.optimizer.fidelities.fidelity import Fidelity, FidelityChoice
    from mondrian_bo.optimizer.models.search_model import SearchModel
    from mondrian_bo.optimizer.stopping.cautious_model import Caution
    from mondrian_bo.optimizer.stopping.remaining_gain import RemainingGain

Params: TypeAlias = dict[str, Any]
"""Values of the active parameters by name."""


class RowOptimizer(Transactional[OptimizerState]):
    """The optimizer that :class:`MondrianOptimizer`, the Optuna sampler and the Ax generator share.

    It is told encoded points, and does not store which are pending. The parameters are those of
    :class:`MondrianOptimizer`.

    Attributes
    ----------
    space : SearchSpace
        The space.
    directions : tuple of str
        Directions of the objectives.
    metrics : TrackedMetrics
        Outcomes that are predicted and have no other role.
    """

    def __init__(
        self,
        space: SearchSpace,
        *,
        directions: Sequence[Direction] = ("minimize",),
        seed: int | Sequence[int] | None = None,
        allow_missing: bool = False,
        reference_point: Sequence[float] | None = None,
        is_valid: Callable[[Params], bool] | None = None,
        warm_start: Sequence[EarlierTrials] = (),
        fidelity: FidelityChoice | None = None,
        **options: Unpack[SearchOptions],
    ) -> None:
        if not isinstance(space, SearchSpace):
            raise TypeError(f"`space` must be a SearchSpace, got {space!r}.")
        self.directions = check_directions("minimize", directions)
        check_flag("allow_missing", allow_missing)
        settings = check_settings(
            **options,
            n_objectives=len(self.directions),
            is_plain=fidelity is None and not columns_of(space, allow_missing).may_be_absent,
        )
        check_callable("is_valid", is_valid)
        super().__init__()
        self.space = space
        self._decoding_rounds = decoding_rounds(space)
        self._valid = None if is_valid is None else ValidRows(is_valid, space)
        self._surrogate = settings.surrogate
        self._signs = np.array([1.0 if one == "maximize" else -1.0 for one in self.directions])
        self._allow_missing = allow_missing
        sequence = seed_sequence(seed)
        self._entropy = sequence.entropy
        model_seed, ask_seed, outcome_seed = sequence.spawn(3)
        self._ask_entropy = [int(word) for word in ask_seed.generate_state(4)]
        self._earlier = tuple(warm_start)
        if self._earlier and len(self.directions) > 1:
            raise ValueError("Earlier studies (`warm_start`) need a single objective.")
        known: tuple[Fidelity, CostModel] | None = None
        if fidelity is not None:
            if len(self.directions) > 1 or self._earlier:
                raise ValueError(
                    "A fidelity needs a single objective, and no earlier studies (`warm_start`)."
                )
            known = new_fidelity(space, fidelity)
        self._fidelity = None if known is None else known[0]
        self._costs = None if known is None else known[1]
        parts = SearchParts(space, settings, allow_missing, model_seed, outcome_seed)
        signed = [one._replace(values=self._signs[0] * one.values) for one in self._earlier]
        self._factory = new_factory(parts, known, signed, sequence)
        self._reference = check_reference(reference_point, len(self.directions))
        # With a fidelity, a restart would begin with first trials that are no incumbents.
        restarts = settings.portfolio.restarts and fidelity is None
        n_startup_trials, n_objectives = settings.n_startup_trials, len(self.directions)
        is_continuous, reference = space.grid_sizes == 0, self._signs * self._reference
        self._search = RestartingSearch(
            self._factory, is_continuous, n_startup_trials, restarts, n_objectives, reference
        )
        # Models of constraints are made when the first value of one is known.
        self._constraints: Constraints | None = None
        self._noise: KnownNoise | None = None
        self.metrics = self._factory.new_metrics()

    @property
    @transaction
    def n_trials(self) -> int:
        """Number of trials told, failed ones not counted."""
        return self._search.n_successes

    @property
    @transaction
    def has_finite_values(self) -> bool:
        """Whether trials have finite values of each objective."""
        return bool(np.isfinite(self._search.trials.values).any(axis=0).all())

    @property
    def arms(self) -> Sequence[tuple[SearchModel, Arm]]:
        """The models of all trials, each with its arm of the portfolio."""
        return self._search.whole.arms

    @transaction
    def scores(self) -> list[tuple[Acquisition, Score]]:
        """Return the acquisitions of the portfolio's first arm, with what a suggestion maximises.

        A score includes the probability that constraints hold. It is minus infinity where
        `is_valid` is False. A score is computed outside of the optimizer's lock, so no other thread
        may use the optimizer at this time.

        Returns
        -------
        list of (Acquisition, callable)
            A callable maps rows of shape (m, d) to their scores, shape (m,).
        """
        rng = np.random.default_rng(0)
        found = self._search.whole.scores(self._constraints, self.space, rng)
        valid = self._valid
        return found if valid is None else [(one, valid.score(score)) for one, score in found]

    @property
    @transaction
    def earlier_weights(self) -> FloatArray:
        """Present weights of the earlier studies (`warm_start`), shape (K,)."""
        return self._search.whole.earlier_weights

    @transaction
    def tell_rows(
        self,
        rows: FloatArray,
        values: FloatArray,
        constraints: FloatArray | None = None,
        errors: FloatArray | None = None,
        nan_is_failure: bool = True,
        costs: FloatArray | None = None,
        weighs: bool = True,
    ) -> None:
        """Report trials as rows of the unit cube, for adapters that encode parameters themselves.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Encoded points, each as ``space.to_unit(params)`` gives it. Numbers of a former, wider
            range are below 0 or above 1. Suggestions stay within the space.
        values : float64 array of shape (m,) or (m, K)
            Their values; NaN for trials that failed.
        constraints : float64 array of shape (m, q) or None, default=None
            Values of the constraints; NaN where unknown. More columns than before add constraints.
        errors : float64 array of shape (m, K + q) or None, default=None
            Standard errors of values and constraints, see :class:`KnownNoise`; NaN where unknown.
        nan_is_failure : bool, default=True
            Whether a value of NaN means that a trial failed, and a constraint of NaN that it holds.
            Otherwise a trial without a value is not suggested again but has not failed, and one
            without the value of a constraint cannot be the incumbent.
        costs : float64 array of shape (m,) or None, default=None
            Costs of the trials, in any unit; NaN where unknown. They count with a fidelity.
        weighs : bool, default=True
            Whether models may weigh trials by their errors.
        """
        if self._before is None:
            self._before = self._state()
        if costs is not None and self._costs is not None:
            self._costs.tell(rows, costs)
        values = values.reshape(len(rows), len(self.directions))
        constraints = np.empty((len(rows), 0)) if constraints is None else constraints
        if errors is None:
            self._store_trials(rows, values, constraints, nan_is_failure)
            return
        if self._noise is None:
            n_known, models = self._search.n_successes, self._outcome_models
            self._noise = KnownNoise(self._store_outcomes, self._moments, n_known, models)
        learn = partial(self._store_outcomes, nan_is_failure=nan_is_failure)
        self._noise.tell(rows, np.hstack([values, constraints]), errors, learn, weighs)

    def _state(self) -> OptimizerState:
        """Return what a transaction that tells trials may have to return to."""
        return OptimizerState(
            self._search.state(),
            None if self._constraints is None else self._constraints.state(),
            None if self._noise is None else self._noise.state(),
            0 if self._costs is None else len(self._costs),
        )

    def _outcome_models(self) -> list[OutcomeModel]:
        """Return the models of all objectives, of the first arm, and of the constraints."""
        constraints = [] if self._constraints is None else self._constraints.models
        return [*self.arms[0][0].models, *constraints]

    def _store_trials(
        self,
        rows: FloatArray,
        values: FloatArray,
        constraints: FloatArray,
        nan_is_failure: bool,
        observed: FloatArray | None = None,
    ) -> None:
        """Store trials by the values to learn, shape (m, K), and the constraints, shape (m, q).

        Values are in the units of the objectives. With known errors, `observed` has values and
        constraints as observed, with their errors, shape (m, K + q, 2).
        """
        is_known = ~np.isnan(values).any(axis=1)
        eligible = None if nan_is_failure else np.asarray(~np.isnan(constraints).any(axis=1))
        if not np.isnan(constraints).all():
            if self._constraints is None:
                self._constraints = self._factory.new_constraints()
            own = None if observed is None else observed[:, len(self.directions) :]
            eligible = self._constraints.tell(rows, constraints, own, nan_is_failure)
        if observed is not None:
            signs = np.column_stack([self._signs, np.ones_like(self._signs)])
            observed = observed[:, : len(signs)] * signs
        if not nan_is_failure:
            self._search.trials.exclude(rows[~is_known])
            rows, values = rows[is_known], values[is_known]
            observed = None if observed is None else observed[is_known]
            eligible = None if eligible is None else eligible[is_known]
        if self._fidelity is not None:
            # Only trials at the target are incumbents.
            is_target = self._fidelity.is_target(rows)
            eligible = is_target if eligible is None else eligible & is_target
        if len(self.directions) == 1:
            own = None if observed is None else observed[:, 0]
            self._search.tell(rows, self._signs[0] * values.ravel(), eligible, own)
        else:
            self._search.tell(rows, self._signs * values, eligible, observed)

    def _store_outcomes(
        self,
        rows: FloatArray,
        outcomes: FloatArray,
        observed: FloatArray | None = None,
        nan_is_failure: bool = True,
    ) -> None:
        """Store the trials' values and constraints, which stand side by side, shape (m, K + q)."""
        values, constraints = np.hsplit(outcomes, [len(self.directions)])
        self._store_trials(rows, values, constraints, nan_is_failure, observed)

    _learn = _store_outcomes  # its name in pickles of earlier versions

    @transaction
    def predict_rows(self, rows: FloatArray) -> Moments:
        """Predict objectives and constraints, without the noise of known errors.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Encoded points, as ``space.to_unit(params)`` gives each of them, shape (d,).

        Returns
        -------
        mean, std : float64 arrays of shape (m, K + q)
            In the units of the outcomes; NaN for constraints without a known value. No constraint
            has a column before the first value of any.
        """
        mean, std = self._moments(rows)
        return mean, std if self._noise is None else self._noise.total_std(std)

    def _moments(self, rows: FloatArray) -> Moments:
        """Return means and deviations of objectives and constraints, both of shape (m, K + q)."""
        shape = len(rows), len(self.directions)
        mean, std = np.full((2, *shape), np.nan)
        if self._search.n_successes:
            mean, std = self._search.whole.outcome_moments(rows)
        means, stds = self._signs * mean.reshape(shape), std.reshape(shape)
        if self._constraints is None:
            return means, stds
        mean, std = self._constraints.outcome_moments(rows)
        return np.hstack([means, mean]), np.hstack([stds, std])

    @transaction
    def predict_quantiles(self, rows: FloatArray, levels: FloatArray) -> FloatArray:
        """Predict quantiles of the objectives.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Encoded points, as ``space.to_unit(params)`` gives each of them, shape (d,).
        levels : float64 array of shape (q,)
            Probabilities in (0, 1).

        Returns
        -------
        float64 array of shape (m, K, q)
            In the units of the objectives; NaN before the first trial.
        """
        result = np.full((len(rows), len(self.directions), len(levels)), np.nan)
        if self._search.n_successes == 0:
            return result
        # Loaded here: suggestions need no quantiles.
        from mondrian_bo.optimizer.models.quantiles import outcome_quantiles

        for k, sign in enumerate(self._signs.tolist()):
            own = levels if sign > 0.0 else 1.0 - levels
            models = [model.models[k] for model, _ in self.arms]
            result[:, k] = sign * outcome_quantiles(models, rows, own)
        return result

    @transaction
    def remaining_gain(
        self,
        n_draws: int,
        caution: Caution | None = None,
        among: FloatArray | None = None,
        within: SearchSpace | None = None,
    ) -> RemainingGain | None:
        """Draw the regret of the trial with the best predicted mean.

        Parameters
        ----------
        n_draws : int
            Number of draws. The same trials give the same draws.
        caution : Caution or None, default=None
            How careful the estimate is; None is that of the terminator.
        among : float64 array of shape (m, d) or None, default=None
            Rows of the trials that the best one is chosen from, m >= 1. None is all trials, and
            under constraints the best feasible ones.
        within : SearchSpace or None, default=None
            Part of the space that contains the optimum, as in :meth:`suggest`; None is all of it.

        Returns
        -------
        RemainingGain or None
            None before the first trial with a finite value, or while no trial is feasible.

        Raises
        ------
        ValueError
            With several objectives.
        """
        if len(self.directions) > 1:
            raise ValueError("The remaining gain is that of a single objective.")
        trials = self._search.trials
        has_value = self._search.n_successes > 0 and np.isfinite(trials.values).any()
        if not has_value or not len(trials.best_rows(eligible=True)):
            return None
        # Loaded here: suggestions do not need it.
        from mondrian_bo.optimizer.stopping.cautious_model import CAREFUL
        from mondrian_bo.optimizer.stopping.remaining_gain import remaining_gain

        space = self.space if within is None else within
        whole, constraints, valid = self._search.whole, self._constraints, self._valid
        seed, caution = [*self._ask_entropy, len(trials)], caution or CAREFUL
        return remaining_gain(whole, space, constraints, n_draws, seed, caution, among, valid)

    @transaction
    def log_feasibility(self, rows: FloatArray) -> FloatArray:
        """Return the log-probability that all constraints hold.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Encoded points, as ``space.to_unit(params)`` gives each of them, shape (d,).

        Returns
        -------
        float64 array of shape (m,)
            The log-probabilities; 0 before the first value of a constraint.
        """
        if self._constraints is None:
            return np.zeros(len(rows))
        return self._constraints.log_probability(rows)

    @transaction
    def suggest(self, pending: FloatArray, index: int, within: SearchSpace | None = None) -> Params:
        """Suggest a trial without storing it as pending, for adapters that do so themselves.

        Parameters
        ----------
        pending : float64 array of shape (k, d)
            Encoded points of the trials that are running now, as ``space.to_unit(params)`` gives
            each of them, shape (d,).
        index : int
            Number of the random draw: an optimizer in the same state suggests the same trial for
            the same index. Quasi-random first trials are the points of a sequence at this index.
        within : SearchSpace or None, default=None
            Part of the space that contains the suggestion (see :class:`RestrictedSpace`); None is
            all of it.

        Returns
        -------
        dict
            Active parameters by name.

        Raises
        ------
        ValueError
            If `is_valid` refuses all points that are tried.
        """
        space = self.space if within is None else within
        rng = np.random.default_rng([*self._ask_entropy, index])
        is_taken = partial(self._repeats, running={row.tobytes() for row in rounded(pending)})
        constraints, valid = self._constraints, self._valid
        has_fixed = isinstance(within, RestrictedSpace) and len(within.fixed) > 0
        request = Request(space, pending, index, rng, is_taken, constraints, valid, has_fixed)
        return self.space.from_unit(self._search.current.suggest(request))

    def _repeats(self, row: FloatArray, running: Collection[bytes]) -> bool:
        """Whether a trial with a row's parameters, rounded or not, was told, ruled out, or runs."""
        trials = self._search.trials
        is_taken = trials.is_taken(row, running)
        if is_taken or not self._decoding_rounds:
            return is_taken
        return trials.is_taken(self.space.to_unit(self.space.from_unit(row)), running)

    def is_taken(self, row: FloatArray, running: Collection[bytes] = ()) -> bool:
        """Return whether a row was told, was ruled out or is running.

        Parameters
        ----------
        row : float64 array of shape (d,)
            The row, compared after :func:`rounded`.
        running : collection of bytes, default=()
            Bytes of the rounded rows of running trials.
        """
        return self._search.trials.is_taken(row, running)

    @transaction
    def exclude_rows(self, rows: FloatArray) -> None:
        """Rule out all trials with the values of encoded points; NaN matches every value.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Encoded points, as ``space.to_unit(params)`` gives each of them, shape (d,).
        """
        self._search.trials.exclude(rows)

    def accepts(self, rows: FloatArray) -> BoolArray:
        """Whether encoded points have all required parameters.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Encoded points, as ``space.to_unit(params)`` gives each of them, shape (d,).

        Returns
        -------
        bool array of shape (m,)
            True where none is missing; with `allow_missing`, where there is at least one.
        """
        if self._allow_missing:
            return np.asarray(~np.isnan(rows).all(axis=1))
        return self.space.is_complete(rows)

    def _undo(self, before: OptimizerState | None) -> None:
        if before is not None:
            self._search.restore(before.search)
            if before.constraints is None:
                self._constraints = None
            elif self._constraints is not None:
                self._constraints.restore(before.constraints)
            if before.noise is None:
                self._noise = None
            elif self._noise is not None:
                self._noise.restore(before.noise)
            if self._costs is not None:
                self._costs.restore(before.n_costs)
        self._search.forget()
        self.metrics.forget()
        if self._constraints is not None:
            self._constraints.forget()

"""A search: trials, models of them, and the choice of the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np

from mondrian_bo.acquisitions.base import Acquisition, Score, ScoreGradients, usage_of
from mondrian_bo.acquisitions.feasibility import constrained
from mondrian_bo.optimizer.constraints.constraints import Constraints, JointFeasibility
from mondrian_bo.optimizer.constraints.half_spaces import HalfSpaces
from mondrian_bo.optimizer.maximization.candidates import (
    CandidateSearch,
    LocalSearch,
    Maximize,
    maximize,
)
from mondrian_bo.optimizer.maximization.local_search import improve
from mondrian_bo.optimizer.models.search_model import SearchModel
from mondrian_bo.optimizer.search.constant_outcomes import is_constant, share_without_model
from mondrian_bo.optimizer.search.first_trials import row_without_model
from mondrian_bo.optimizer.search.portfolio import Arm
from mondrian_bo.optimizer.search.request import Request
from mondrian_bo.optimizer.search.step_choice import row_of_step
from mondrian_bo.optimizer.shared.search_trials import SearchTrials
from mondrian_bo.optimizer.shared.trials import N_BEST, Trials
from mondrian_bo.search_space import RestrictedSpace, SearchSpace
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.shared.blas_threads import single_threaded_blas
from mondrian_bo.shared.float_range import TINY
from mondrian_bo.shared.projected_lbfgs import UNLIMITED

_STEPS = 20
"""Gradient steps of a local search over a prediction with one component: our choice."""

_CANDIDATE_MODELS = 2
"""Number of models that predict all candidates. With more of them there are fewer candidates, so
that a suggestion takes at most about twice the time of one with a single model."""

_FEW_TRIALS = 200
"""Largest number of trials with which all candidates are scored."""

_NEAR_SHARE = 0.25
"""Share of the candidates near the best rows that are scored with more trials, without constraints:
a candidate costs more then, and the outcome is the same. With fewer candidates over all the space,
the search finds other basins later."""

_MANY_TRIALS = 2000
"""Largest number of trials with which all candidates over the space are scored."""

_FAR_SHARE = 0.25
"""Share of the candidates over the space that are scored with more trials, with one objective and
without constraints or `is_valid`. Nearly every such candidate lies in another leaf, whose arrays
come from main memory."""

_STEPS_BEFORE_POLISHING = 3
"""Gradient steps of a local search whose best row is polished: our choice, more gain nothing."""

_POLISHING_EVALUATIONS = 40
"""Largest number of evaluations in the polishing where models have several leaves, our choice: the
score jumps between them, and a hundred more evaluations raise it by 0.001 as a rule."""

_FEWEST_STEPS = 8
"""Smallest number of gradient steps. A step costs as much as there are components, so the number of
steps falls with them."""

_SHARE_WHILE_RUNNING = 0.5
"""Share of suggestions that use :attr:`Arm.while_running` while trials are running: our choice,
between the two kinds, as each is the better one on some functions."""

_LATEST = 200
"""Number of latest trials whose choices a local search tries where there are many, our choice. The
best trials' choices are among the candidates that it starts from."""

_FEW_CONSTRAINTS = 3
"""Largest number of modelled constraints under which :attr:`Arm.constrained` is used: our choice.
On a discus function in ten dimensions with three of them, a search gains by keeping away from
their bounds."""


class _ScoreToClimb(NamedTuple):
    """A score of candidates, and the local search from the best ones.

    Attributes
    ----------
    score : callable
        Maps rows to scores.
    gradients : callable or None
        Maps rows to scores and their derivatives; None if there is no local search.
    n_smooth_components : int
        Number of components of the predictions behind the gradients.
    n_polished, n_evaluations : int
        See :func:`improve`.
    """

    score: Score
    gradients: ScoreGradients | None
    n_smooth_components: int
    n_polished: int = 0
    n_evaluations: int = UNLIMITED


@dataclass(eq=False)
class Search:
    """Trials, models of them with their acquisitions, and the choice of the next trial.

    Parameters
    ----------
    trials : SearchTrials
        The trials. More may be added later.
    arms : sequence of (SearchModel, Arm)
        One model, and one acquisition of its arm, is drawn for each trial.
    n_startup_trials : int
        Number of first trials without the model: the middle of the space, then quasi-random points.
    n_candidates : int
        Number of candidates to score for each suggestion.
    shift : float64 array of shape (d,)
        Shift of the quasi-random sequence.
    starts : float64 array of shape (k, d) or None, default=None
        The rows that candidates start from; None is the best trials.
    new_rugged : callable or None, default=None
        Returns the model and the arm that make the suggestions while the values are rugged, with
        one objective and without constraints; None keeps the other arms.
    """

    trials: SearchTrials
    arms: Sequence[tuple[SearchModel, Arm]]
    n_startup_trials: int
    n_candidates: int
    shift: FloatArray
    starts: FloatArray | None = field(default=None, kw_only=True)
    new_rugged: Callable[[], tuple[SearchModel, Arm]] | None = field(default=None, kw_only=True)

    @property
    def earlier_weights(self) -> FloatArray:
        """Weights of earlier studies, shape (0,), as this search has none."""
        return np.empty(0)

    @cached_property
    def rugged(self) -> tuple[SearchModel, Arm] | None:
        """Model and arm of rugged values, made when they are first needed, as few searches do."""
        return None if self.new_rugged is None else self.new_rugged()

    @property
    def rugged_steps(self) -> list[int]:
        """Numbers of trials at which the model of rugged values has learnt; none before it is made.

        They may be set, which makes the model.
        """
        made = self.__dict__.get("rugged")
        return [] if made is None else made[0].models[0].learnt_at

    @rugged_steps.setter
    def rugged_steps(self, steps: list[int]) -> None:
        if steps and self.rugged is not None:
            self.rugged[0].models[0].learnt_at = steps

    def forget(self) -> None:
        """Let all models learn their trials again when they are used next."""
        rugged = self.__dict__.get("rugged")
        for model, _ in self.arms if rugged is None else (*self.arms, rugged):
            model.forget()

    @classmethod
    def like(cls, other: Search, **more: Any) -> Self:
        """Return a search of this class with the fields of another search, and with further ones.

        Parameters
        ----------
        other : Search
            The other search.
        **more : object
            Fields that the other search lacks, or that differ from its own.
        """
        return cls(**{**{one.name: getattr(other, one.name) for one in fields(other)}, **more})

    def suggest(self, request: Request) -> FloatArray:
        """Return the row of the next trial, shape (d,)."""
        space, pending, rng = request.space, request.pending, request.rng
        constraints, valid = request.constraints, request.valid
        find, half_spaces = _maximizer(request)
        if not self._needs_model(len(pending)):
            return self._row_without_model(request, find, half_spaces)
        chosen = self._draw_arm(request)
        if chosen is None:
            return self._row_without_model(request, find, half_spaces, is_informed=True)
        model, arm = chosen
        acquisition, n_candidates, *shares = self._draw_acquisition(request, arm, half_spaces)
        objective_imputed: AbstractContextManager[None] = nullcontext()
        constraints_imputed: AbstractContextManager[None] = nullcontext()
        if len(pending):
            objective_imputed = model.imputing(pending, rng)
            if constraints is not None:
                constraints_imputed = constraints.imputing(pending, rng)
        # Models limit BLAS to one thread themselves; one limit around all calls is cheaper.
        with single_threaded_blas(), objective_imputed, constraints_imputed:
            # Trials are learnt one by one, also if no acquisition chooses.
            model.learn()
            starts = self.trials.best_rows() if self.starts is None else self.starts
            rivals = None
            if request.has_fixed and constraints is None and isinstance(self.trials, Trials):
                starts = rivals = _rivals_within(space, self.trials)
            candidate_search = CandidateSearch(
                space, starts, request.is_taken, rng, n_candidates, *shares
            )
            if constraints is None:
                if self.trials.n_objectives == 1:
                    (objective,) = model.models
                    row = row_of_step(objective, arm, candidate_search, find, pending, valid)
                    if row is not None:
                        return row
                    score, gradients = objective.score(acquisition, rng, rivals)
                else:
                    score, gradients = model.score(acquisition, rng)
                to_climb = _ScoreToClimb(score, gradients, model.n_smooth_components)
            else:
                feasibility = constraints.feasibility(half_spaces.numbers if half_spaces else ())
                if not self._has_eligible:
                    starts = constraints.least_violating(feasibility)
                    candidate_search = candidate_search._replace(starts=starts)
                exponent = self._exponent(constraints)
                to_climb = self._score_under(feasibility, exponent, model, acquisition, rng)
                if half_spaces is not None:
                    score, gradients = half_spaces.within(to_climb.score, to_climb.gradients)
                    to_climb = to_climb._replace(score=score, gradients=gradients)
            return find(to_climb.score, candidate_search, self._local_search(to_climb, space))

    def _local_search(self, to_climb: _ScoreToClimb, space: SearchSpace) -> LocalSearch | None:
        """Return the local search of a score; None if it has no gradients."""
        if to_climb.gradients is None:
            return None
        n_steps = _STEPS_BEFORE_POLISHING
        if to_climb.n_polished == 0:
            # The cost is proportional to components times steps.
            n_steps = max(_STEPS // to_climb.n_smooth_components, _FEWEST_STEPS)
        return partial(
            improve,
            to_climb.score,
            to_climb.gradients,
            space,
            n_steps=n_steps,
            known=self.trials.rows[-_LATEST:],
            n_polished=to_climb.n_polished,
            n_evaluations=to_climb.n_evaluations,
        )

    def _needs_model(self, n_pending: int) -> bool:
        """Return whether the model makes the next suggestion, as some trials are known.

        Parameters
        ----------
        n_pending : int
            Number of running trials, which count as first trials as well.
        """
        n_trials = len(self.trials)
        return n_trials > 0 and n_trials + n_pending >= self.n_startup_trials

    def _row_without_model(
        self,
        request: Request,
        find: Maximize,
        half_spaces: HalfSpaces | None,
        is_informed: bool = False,
    ) -> FloatArray:
        """Return the row of a trial that no acquisition chooses, shape (d,)."""
        return row_without_model(
            request, self.trials, self.shift, self.n_candidates, find, half_spaces, is_informed
        )

    def _draw_arm(self, request: Request) -> tuple[SearchModel, Arm] | None:
        """Draw an arm; None if the next suggestion is a quasi-random point."""
        rng, values = request.rng, self.trials.values
        model, arm = self.arms[int(rng.integers(len(self.arms)))]
        is_plain = request.constraints is None and self.trials.n_objectives == 1
        if not is_plain:
            share = 0.0
            if arm.exploration > 0.0:
                share = share_without_model(
                    self.trials, request.constraints, self._has_eligible, arm.exploration
                )
            return None if share > 0.0 and rng.random() < share else (model, arm)
        if arm.exploration == 0.0 and self.new_rugged is None:
            return model, arm
        # Trials are learnt one by one, also if no model chooses.
        with single_threaded_blas():
            judged = model.models[0].judgement
        if arm.exploration > 0.0:
            # As a rule two values differ, and nothing is called.
            if values[-1] == values[0] and is_constant(values):
                return None
            if judged.is_noise and rng.random() < arm.exploration:
                return None
        return (self.rugged if judged.is_rugged else None) or (model, arm)

    def _draw_acquisition(
        self, request: Request, arm: Arm, half_spaces: HalfSpaces | None
    ) -> tuple[Acquisition, int, float, float]:
        """Draw one of an arm's acquisitions, and say how many candidates it scores.

        Returns
        -------
        acquisition : Acquisition
            The one that was drawn.
        n_candidates, near_share, far_share : int and floats
            Those of :class:`CandidateSearch`.
        """
        constraints, rng = request.constraints, request.rng
        n_trials, n_models = len(self.trials), self.trials.n_objectives
        share, near_share, far_share = 1.0, 1.0, 1.0
        acquisitions, n_modelled = _acquisitions_of(arm, constraints, half_spaces)
        n_models += n_modelled
        if constraints is None:
            # `share` applies to all candidates, so it is divided out of the two shares below.
            share = arm.candidates
            if n_trials > _FEW_TRIALS:
                near_share = min(_NEAR_SHARE / share, 1.0)
            if n_trials > _MANY_TRIALS and self.trials.n_objectives == 1 and request.valid is None:
                far_share = min(_FAR_SHARE / share, 1.0)
            if arm.while_running and len(request.pending) and rng.random() < _SHARE_WHILE_RUNNING:
                acquisitions = arm.while_running
        share = min(share, _CANDIDATE_MODELS / n_models)
        n_candidates = max(int(share * self.n_candidates), 1)
        acquisition = acquisitions[int(rng.integers(len(acquisitions)))]
        return acquisition, n_candidates, near_share, far_share

    @property
    def _has_eligible(self) -> bool:
        """Whether a trial may be the incumbent."""
        return len(self.trials.best_rows(eligible=True)) > 0

    def _exponent(self, constraints: Constraints) -> float:
        """Return the power of the probability of feasibility by which scores are weighted."""
        # Several objectives need trials at the bounds of all regions that a front crosses.
        return constraints.exponent if self.trials.n_objectives == 1 else 1.0

    def _score_under(
        self,
        feasibility: JointFeasibility,
        exponent: float,
        model: SearchModel,
        acquisition: Acquisition,
        rng: np.random.Generator,
    ) -> _ScoreToClimb:
        """Return the score under constraints, `exponent` being that of their probability."""
        if self._has_eligible:
            n_components = model.n_smooth_components
            score, gradients = model.score(acquisition, rng)
            if len(feasibility):
                score, gradients = constrained(acquisition, score, gradients, feasibility, exponent)
                n_components += feasibility.n_smooth_components
        else:
            # While no trial is eligible, only feasibility counts.
            n_components = feasibility.n_smooth_components
            score = feasibility.log_probability
            gradients = feasibility.gradients if n_components else None
        to_climb = _ScoreToClimb(score, gradients, n_components)
        if not usage_of(acquisition).polishes_under_constraints:
            return to_climb
        has_leaves = model.models[0].n_smooth_components > 1
        n_evaluations = _POLISHING_EVALUATIONS if has_leaves else UNLIMITED
        return to_climb._replace(n_polished=1, n_evaluations=n_evaluations)

    def scores(
        self, constraints: Constraints | None, space: SearchSpace, rng: np.random.Generator
    ) -> list[tuple[Acquisition, Score]]:
        """Return the first arm's acquisitions, with what a suggestion would maximise of each.

        Parameters
        ----------
        constraints : Constraints or None
            As in :class:`Request`.
        space : SearchSpace
            Where to search.
        rng : numpy.random.Generator
            Source of drawn functions.
        """
        model, arm = self.arms[0]
        half_spaces = None if constraints is None else constraints.half_spaces(space)
        acquisitions, _ = _acquisitions_of(arm, constraints, half_spaces)
        if constraints is None:
            return [(one, model.score(one, rng)[0]) for one in acquisitions]
        # Half spaces would score a point beyond them as the nearest one within.
        feasibility, exponent = constraints.feasibility(), self._exponent(constraints)
        return [
            (one, self._score_under(feasibility, exponent, model, one, rng).score)
            for one in acquisitions
        ]

    def outcome_moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict mean and standard deviation in the units of the values, both of shape (m,).

        The prediction is the equally weighted mixture of those of all arms. With several objectives
        the shapes are (m, K).
        """
        return _average([model.outcome_moments(rows) for model, _ in self.arms])


def _maximizer(request: Request) -> tuple[Maximize, HalfSpaces | None]:
    """Return what maximises a score within valid rows or linear constraints, and the latter."""
    if request.valid is not None:
        return request.valid.maximize, None
    if request.constraints is None:
        return maximize, None
    half_spaces = request.constraints.half_spaces(request.space)
    return (maximize if half_spaces is None else half_spaces.maximize), half_spaces


def _average(
    moments: Sequence[tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of equally weighted mixtures, of the components' shape.

    Parameters
    ----------
    moments : sequence of (mean, std), at least one
        Means and standard deviations of the components, float64 arrays of shape (m,), finite. A
        single component is returned unchanged.
    """
    if len(moments) == 1:
        return moments[0]
    # With shares and relative deviations neither sums nor squares overflow.
    shares = np.array(moments) / len(moments)
    mean = shares[:, 0].sum(axis=0)
    deviations = np.hypot(shares[:, 1], shares[:, 0] - mean / len(moments))
    size = np.maximum(deviations.max(axis=0), TINY)
    std = size * np.sqrt(((deviations / size) ** 2).mean(axis=0))
    return mean, np.minimum(std, np.finfo(np.float64).max / len(moments)) * len(moments)


def _acquisitions_of(
    arm: Arm, constraints: Constraints | None, half_spaces: HalfSpaces | None
) -> tuple[Sequence[Acquisition], int]:
    """Return the acquisitions of an arm, and the number of constraints that are modelled."""
    if constraints is None:
        return arm.acquisitions, 0
    n_modelled = len(constraints) - (len(half_spaces.numbers) if half_spaces else 0)
    found = arm.constrained or arm.acquisitions
    return (arm.many_constrained or found) if n_modelled > _FEW_CONSTRAINTS else found, n_modelled


def _rivals_within(space: SearchSpace, trials: Trials) -> FloatArray:
    """Return the best trials in a part of a space, and the best of all trials moved there.

    The latter are good guesses while few trials have the fixed values.

    Parameters
    ----------
    space : SearchSpace
        The part; a :class:`RestrictedSpace` with fixed values.
    trials : Trials
        All trials, at least one.

    Returns
    -------
    float64 array of shape (k, d)
        At most 20 rows of the part. Takes O(n d) for n trials.
    """
    assert isinstance(space, RestrictedSpace)
    inside = np.flatnonzero(space.has_fixed(trials.rows))
    best = inside[np.argsort(-trials.values[inside], kind="stable")[:N_BEST]]
    rows = np.concatenate([trials.rows[best], trials.best_rows()])
    return space.snap(space.filled(rows))

"""A search: trials, models of them, and the choice of the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from mondrian_bo.acquisitions.base import Acquisition, Score, ScoreGradients, usage_of
from mondrian_bo.acquisitions.feasibility import constrained
from mondrian_bo.optimizer.constraints.constraints import Constraints
from mondrian_bo.optimizer.constraints.half_spaces import HalfSpaces
from mondrian_bo.optimizer.maximization.candidates import (
    CandidateSearch,
    LocalSearch,
    Maximize,
    centre,
    maximize,
    quasi_random_rows,
)
from mondrian_bo.optimizer.maximization.local_search import improve
from mondrian_bo.optimizer.maximization.valid_rows import ValidRows
from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.optimizer.models.search_model import SearchModel
from mondrian_bo.optimizer.search.portfolio import Arm
from mondrian_bo.optimizer.search.step_choice import row_of_step
from mondrian_bo.optimizer.shared.search_trials import SearchTrials
from mondrian_bo.search_space import SearchSpace
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
without constraints: each is in a leaf of its own then, whose arrays come from the main memory."""

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

_N_LIKELY = 64
"""Number of quasi-random points of which a first trial of a restarted search is the one that most
probably holds all constraints: our choice."""

_INFORMATIVE = 10
"""Number of trials that constraints know and a search does not, from which on they choose its first
trials, our choice: fewer tell little of a constraint."""


class Request(NamedTuple):
    """What a search needs to know for a suggestion.

    Attributes
    ----------
    space : SearchSpace
        Where to search: the space of the trials or a part of it.
    pending : float64 array of shape (k, d)
        Trials that are running.
    number : int
        Index of the point in the quasi-random sequence, used while there is no model.
    rng : numpy.random.Generator
        Source of all other randomness.
    is_taken : callable
        Whether a row of shape (d,) has been tried or is running.
    constraints : Constraints or None
        Models of the constraints, at least one of which has a value.
    valid : ValidRows or None
        Which rows may be suggested; None is all.
    """

    space: SearchSpace
    pending: FloatArray
    number: int
    rng: np.random.Generator
    is_taken: Callable[[FloatArray], bool]
    constraints: Constraints | None
    valid: ValidRows | None


class _ScoreToClimb(NamedTuple):
    """A score of candidates, and the local search from the best ones.

    Attributes
    ----------
    score : callable
        Maps rows to scores.
    gradients : callable or None
        Maps rows to scores and their derivatives; None if there is no local search.
    n_gradients : int
        Number of Gaussians behind a score with gradients.
    n_polished, n_evaluations : int
        See :func:`improve`.
    """

    score: Score
    gradients: ScoreGradients | None
    n_gradients: int
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
    """

    trials: SearchTrials
    arms: Sequence[tuple[SearchModel, Arm]]
    n_startup_trials: int
    n_candidates: int
    shift: FloatArray
    starts: FloatArray | None = field(default=None, kw_only=True)

    @property
    def earlier_weights(self) -> FloatArray:
        """Weights of earlier studies, shape (0,), as this search has none."""
        return np.empty(0)

    def suggest(self, request: Request) -> FloatArray:
        """Return the row of the next trial, shape (d,)."""
        space, pending, _, rng, is_taken, constraints, valid = request
        find, half_spaces = _maximizer(request)
        n_trials = len(self.trials)
        if n_trials == 0 or not self._needs_model(n_trials + len(pending)):
            return self._suggest_without_model(request, find, half_spaces)
        model, arm = self.arms[int(rng.integers(len(self.arms)))]
        acquisition, n_candidates, *shares = self._draw_acquisition(request, arm, half_spaces)
        running: AbstractContextManager[None] = nullcontext()
        imputed: AbstractContextManager[None] = nullcontext()
        if len(pending):
            running = model.imputing(pending, rng)
            imputed = imputed if constraints is None else constraints.imputing(pending, rng)
        # Models limit BLAS to one thread themselves; one limit around all calls is cheaper.
        with single_threaded_blas(), running, imputed:
            # The model learns here: trials are learnt one by one, also if no acquisition chooses.
            n_gradients = model.n_gradients
            starts = self.trials.best_rows() if self.starts is None else self.starts
            candidate_search = CandidateSearch(space, starts, is_taken, rng, n_candidates, *shares)
            if constraints is None:
                if self.trials.n_objectives == 1:
                    if arm.exploration > 0.0 and self._explores(model.models[0], arm, rng):
                        return self._suggest_without_model(request, find, None)
                    row = row_of_step(model.models[0], arm, candidate_search, find, pending, valid)
                    if row is not None:
                        return row
                ascent = _ScoreToClimb(*model.score(acquisition, rng), n_gradients)
            else:
                ascent, candidate_search = self._score_under(
                    constraints, half_spaces, model, acquisition, candidate_search
                )
            return find(ascent.score, candidate_search, self._local_search(ascent, space))

    def _local_search(self, ascent: _ScoreToClimb, space: SearchSpace) -> LocalSearch | None:
        """Return the local search of a score; None if it has no gradients."""
        if ascent.gradients is None:
            return None
        n_steps = _STEPS_BEFORE_POLISHING
        if ascent.n_polished == 0:
            # The cost is proportional to components times steps.
            n_steps = max(_STEPS // ascent.n_gradients, _FEWEST_STEPS)
        return partial(
            improve,
            ascent.score,
            ascent.gradients,
            space,
            n_steps=n_steps,
            known=self.trials.rows[-_LATEST:],
            n_polished=ascent.n_polished,
            n_evaluations=ascent.n_evaluations,
        )

    def _needs_model(self, n_started: int) -> bool:
        """Return whether the model makes the next suggestion, as some trials are known.

        Parameters
        ----------
        n_started : int
            Number of trials of this search, and of those that are running.
        """
        return n_started >= self.n_startup_trials

    def _explores(self, model: OutcomeModel, arm: Arm, rng: np.random.Generator) -> bool:
        """Return whether the next suggestion is a quasi-random point."""
        values = self.trials.values
        # The comparison of the last value alone is enough as a rule. One value is no plateau.
        if values[-1] == values[0] and len(values) > 1 and (values == values[0]).all():
            return True
        return model.is_noise and rng.random() < arm.exploration

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
            share = arm.candidates  # reduces those near the best rows, too
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

    def _suggest_without_model(
        self, request: Request, find: Maximize, half_spaces: HalfSpaces | None
    ) -> FloatArray:
        """Return the row of one of the first trials, shape (d,)."""
        space, _, _, rng, is_taken, constraints, valid = request
        n_trials = len(self.trials)
        n_more = 0 if constraints is None else len(constraints.rows) - n_trials
        if n_more >= _INFORMATIVE and valid is None:
            row = _likely_row(request, half_spaces)
        else:
            row = _first_row(request, self.shift, self.trials.rows)
        if half_spaces is not None:
            row = half_spaces.reached(space, row)
        if not is_taken(row):
            return row
        # In a small finite space the sequence repeats its points.
        starts = self.trials.best_rows() if n_trials else space.sample(1, rng)
        candidate_search = CandidateSearch(space, starts, is_taken, rng, self.n_candidates)
        return find(lambda rows: rng.random(len(rows)), candidate_search, None)

    def _score_under(
        self,
        constraints: Constraints,
        half_spaces: HalfSpaces | None,
        model: SearchModel,
        acquisition: Acquisition,
        candidate_search: CandidateSearch,
    ) -> tuple[_ScoreToClimb, CandidateSearch]:
        """Return the score under constraints, and where candidates for it start."""
        feasibility = constraints.feasibility(half_spaces.numbers if half_spaces else ())
        if len(self.trials.best_rows(feasible=True)):
            n_gradients = model.n_gradients
            score, gradients = model.score(acquisition, candidate_search.rng)
            if len(feasibility):
                # Several objectives need trials at the bounds of all regions that a front crosses.
                exponent = constraints.exponent if self.trials.n_objectives == 1 else 1.0
                score, gradients = constrained(acquisition, score, gradients, feasibility, exponent)
                n_gradients += feasibility.n_gradients
        else:
            # While no trial is feasible, only feasibility counts.
            candidate_search = candidate_search._replace(
                starts=constraints.least_violating(feasibility)
            )
            n_gradients = feasibility.n_gradients
            score = feasibility.log_probability
            gradients = feasibility.gradients if n_gradients else None
        if half_spaces is not None:
            score, gradients = half_spaces.within(score, gradients)
        if not usage_of(acquisition).polishes_under_constraints:
            return _ScoreToClimb(score, gradients, n_gradients), candidate_search
        has_leaves = model.models[0].n_gradients > 1
        return _ScoreToClimb(
            score,
            gradients,
            n_gradients,
            n_polished=1,
            n_evaluations=_POLISHING_EVALUATIONS if has_leaves else UNLIMITED,
        ), candidate_search

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
        starts = self.trials.best_rows()
        candidate_search = CandidateSearch(space, starts, lambda row: False, rng, self.n_candidates)
        found = []
        for one in acquisitions:
            # Half spaces would score a point beyond them as the nearest one within.
            ascent, _ = self._score_under(constraints, None, model, one, candidate_search)
            found.append((one, ascent.score))
        return found

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
    spread = size * np.sqrt(((deviations / size) ** 2).mean(axis=0))
    return mean, np.minimum(spread, np.finfo(np.float64).max / len(moments)) * len(moments)


def _acquisitions_of(
    arm: Arm, constraints: Constraints | None, half_spaces: HalfSpaces | None
) -> tuple[Sequence[Acquisition], int]:
    """Return the acquisitions of an arm, and the number of constraints that are modelled."""
    if constraints is None:
        return arm.acquisitions, 0
    n_modelled = len(constraints) - (len(half_spaces.numbers) if half_spaces else 0)
    found = arm.constrained or arm.acquisitions
    return (arm.many_constrained or found) if n_modelled > _FEW_CONSTRAINTS else found, n_modelled


def _first_row(request: Request, shift: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the middle of the space for the first trial, and a quasi-random point for others."""
    space, index, valid = request.space, request.number, request.valid
    if index == 0:
        middle = centre(space, shift)
        if valid is None or valid.contains(middle[None])[0]:
            return middle
    if valid is None:
        return np.asarray(quasi_random_rows(space, index, 1, shift)[0])
    trials = np.concatenate([rows, request.pending])
    return valid.first(space, index, shift, request.rng, trials)


def _likely_row(request: Request, half_spaces: HalfSpaces | None) -> FloatArray:
    """Return the one of some quasi-random points that most probably holds all constraints."""
    space, constraints = request.space, request.constraints
    assert constraints is not None
    rows = quasi_random_rows(space, 0, _N_LIKELY, request.rng.random(space.n_dimensions))
    score: Score = constraints.feasibility(
        half_spaces.numbers if half_spaces else ()
    ).log_probability
    if half_spaces is not None:
        score, _ = half_spaces.within(score, None)
    with single_threaded_blas():
        return np.asarray(rows[int(np.argmax(score(rows)))])

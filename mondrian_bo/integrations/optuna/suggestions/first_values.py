"""Values of parameters that are drawn one by one, before a finished trial has had them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial, TrialState

from mondrian_bo.integrations.optuna.study.distributions import nearest_number, to_parameter
from mondrian_bo.integrations.optuna.study.fixed_values import internal_enqueued
from mondrian_bo.integrations.optuna.study.proposals import (
    internal_values,
    publish,
    raw_running_values,
)
from mondrian_bo.integrations.optuna.study.trial_feed import local_time
from mondrian_bo.optimizer.maximization.candidates import centre
from mondrian_bo.search_space import Categorical, SearchSpace

_SHARE_NEAREST = 0.5
"""Share of proposals outside of a finite range that become its nearest number. With all of them,
trials gather at the ends of ranges; with none, they ignore the model. Our choice."""

_MOST_ROUNDS = 32
"""Times that a value is drawn again because another worker has published the same: two workers that
read and publish in step draw apart after a few."""

_MOST_DRAWS = 4096
"""Draws of one parameter before the search for a valid value, or one that others do not have, gives
up: a range of 0.1 % is then missed with a probability of 2 %."""

_DRAWS_PER_VALUE = 8
"""Draws from a finite range for each of its values, before all of them count as taken: a single
one that is left is missed with a probability of exp(-8)."""

_MANY_POINTS = 10**6
"""Number of points from which on a trial that differs from all others publishes no further values,
our choice: a later trial has the same ones with a probability of one in a million."""


class FirstValues:
    """Values of one new parameter of a trial.

    Parameters
    ----------
    study, trial
        The trial and its study.
    name : str
        The parameter.
    distribution : BaseDistribution
        Its distribution, of more than one value.
    seed : int
        Seed of the draws.
    """

    def __init__(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        name: str,
        distribution: BaseDistribution,
        seed: int,
    ) -> None:
        self._study, self._trial = study, trial
        self._name, self._distribution = name, distribution
        self._sampler = RandomSampler(seed=seed)
        self._rng = np.random.default_rng(seed)

    def nearest(self, proposal: float) -> float | int | None:
        """Return the number nearest to a proposal that is outside of the distribution.

        None for a distribution that is no range, and every second time, by chance, in a finite one.
        """
        if _n_values(self._distribution) and self._rng.random() >= _SHARE_NEAREST:
            return None
        return nearest_number(self._distribution, proposal)

    def first(self) -> Any:
        """Return the middle of a range in a study's first trial, and a draw otherwise."""
        value, parameter = self.draw(), to_parameter(self._distribution)
        if self._trial.number > 0 or parameter is None or isinstance(parameter, Categorical):
            return value
        space = SearchSpace({self._name: parameter})
        middle = space.from_unit(centre(space, np.zeros(1)))[self._name]
        # The storage rounds large integers.
        one = self._distribution
        return one.to_external_repr(one.to_internal_repr(middle))

    def draw(self) -> Any:
        """Return the next value, uniform on the scale of the distribution."""
        one = self._distribution
        if isinstance(one, FloatDistribution) and not one.log and one.step is None:
            width = one.high - one.low
            if not math.isfinite(width):
                # Optuna's sampler raises an OverflowError.
                share = float(self._rng.random())
                return min(max((1.0 - share) * one.low + share * one.high, one.low), one.high)
        return self._sampler.sample_independent(self._study, self._trial, self._name, one)

    def valid(self, value: Any, accepts: Callable[[Any], bool], known: Mapping[str, Any]) -> Any:
        """Return the first valid one of a proposal and further draws.

        Parameters
        ----------
        value : object
            The proposal.
        accepts : callable
            Which values are valid.
        known : mapping of str to object
            The trial's other values, for the message.

        Returns
        -------
        object
            A valid value.

        Raises
        ------
        ValueError
            If thousands of values are refused.
        """
        for _ in range(_MOST_DRAWS):
            if accepts(value):
                return value
            value = self.draw()
        raise ValueError(
            f"`is_valid` refused all of {_MOST_DRAWS} values of {self._name!r} beside {known!r}. "
            "New parameters are drawn one after the other: `is_valid` should return False as soon "
            "as nothing valid is left, or the study should start with a valid trial "
            "(`study.enqueue_trial`)."
        )

    def new(
        self,
        value: Any,
        proposal: float,
        accepts: Callable[[Any], bool],
        is_taken: Callable[[Mapping[str, float]], bool],
    ) -> Any:
        """Return the first one of a value and further draws that repeats no trial.

        Parameters
        ----------
        value : object
            The first value.
        proposal : float
            A value outside of the distribution, in Optuna's internal representation.
        accepts : callable
            Which values are allowed.
        is_taken : callable
            Whether another trial has all of some values.

        Returns
        -------
        object
            The value. If none is found, the number nearest to the proposal, so that the proposal
            is learnt and not made again.
        """
        one, draw = self._distribution, value
        values = raw_running_values(self._trial)
        n_draws = min(_DRAWS_PER_VALUE * _n_values(one), _MOST_DRAWS) or _MOST_DRAWS
        for _ in range(n_draws):
            if accepts(draw) and not is_taken({**values, self._name: one.to_internal_repr(draw)}):
                return draw
            draw = self.draw()
        nearest = nearest_number(one, proposal)
        return value if nearest is None or not accepts(nearest) else nearest

    def free(
        self,
        value: Any,
        accepts: Callable[[Any], bool],
        distributions: Mapping[str, BaseDistribution],
    ) -> Any:
        """Return a value that few other trials have beside the same values of other parameters.

        Workers that start together draw all parameters one by one. In a finite space their points
        differ as long as each parameter has the value that the fewest of the others have. A value
        is stored before the others are read, so that of two workers at least one sees the other.

        Parameters
        ----------
        value : object
            The first proposal.
        accepts : callable
            Which values are allowed.
        distributions : mapping of str to BaseDistribution
            The distributions of parameters that finished trials have.

        Returns
        -------
        object
            The proposal or another draw. A proposal that others have is kept if no better one is
            found. Trials that ended with a value before this one began do not count.
        """
        size = _n_values(self._distribution)
        own = self._trial.distributions
        # One continuous parameter sets a trial apart from all others.
        if not size or not all(map(_n_values, own.values())):
            return value
        known = raw_running_values(self._trial)
        known.pop(self._name, None)
        if not all(_n_values(own.get(name, distributions.get(name))) for name in known):
            return value
        # The trial may not ask for all that was proposed, if it is the first in a branch.
        asked = internal_values(self._trial)
        internal = self._distribution.to_internal_repr
        n_points = math.prod(map(_n_values, own.values()))
        if n_points >= _MANY_POINTS and not any(
            asked.items() <= other.items() for other in self._values_beside()
        ):
            return value
        n_before = 0
        for _ in range(_MOST_ROUNDS):
            proposal = {**known, self._name: internal(value)}
            n_before = publish(self._study, self._trial, proposal, n_before)
            counts = _counts(self._values_beside(), asked, self._name)
            least = min(counts.values()) if len(counts) >= size else 0
            if counts[internal(value)] <= least:
                return value
            for _ in range(_MOST_DRAWS):
                other = self.draw()
                if counts[internal(other)] <= least and accepts(other):
                    value = other
                    break
            else:
                return value
        return value

    def _values_beside(self) -> list[dict[str, float]]:
        """Return values of the other trials that run, ran when this one began, or have no value."""
        trials = self._study.get_trials(deepcopy=False)
        began = local_time(self._trial.datetime_start)
        known = {**self._trial.distributions, self._name: self._distribution}
        return [
            {**raw_running_values(one), **internal_enqueued(one, known)}
            for one in trials
            if one.number != self._trial.number
            and (
                one.state in (TrialState.RUNNING, TrialState.FAIL)
                or (one.state == TrialState.PRUNED and not one.intermediate_values)
                or (
                    one.datetime_complete is not None and local_time(one.datetime_complete) >= began
                )
            )
        ]


def _counts(
    others: Sequence[Mapping[str, float]], known: Mapping[str, float], name: str
) -> Counter[float]:
    """Count the values of a parameter in trials that have all of some known values."""
    alike = (one for one in others if all(one.get(k) == value for k, value in known.items()))
    return Counter(one[name] for one in alike if name in one)


def _n_values(distribution: BaseDistribution | None) -> int:
    """Return the number of values of a distribution; 0 if continuous or not known."""
    parameter = None if distribution is None else to_parameter(distribution)
    return 0 if parameter is None else parameter.n_values

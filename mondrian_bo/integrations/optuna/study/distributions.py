"""Optuna's distributions as parameters of a search space."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from mondrian_bo.search_space import Categorical, Condition, Float, Int, Parameter, SearchSpace
from mondrian_bo.surrogates.base import WIDE_SPACE

_GROWTH = 1.1
"""Factor of the number of trials at which the optimizer of a wide space is built again, our choice:
trials are then told ten times each in the long run. Building one takes as long as many suggestions,
and a study that finds a new branch at each trial would build one each time."""


ROUNDING = 4.0 * sys.float_info.epsilon
"""Largest rounding error of a number of a range, relative to the ends: a product, a sum and a
quotient round once each."""


class SpaceRecipe(NamedTuple):
    """What the space of an optimizer depends on.

    Attributes
    ----------
    distributions : dict
        The search space.
    conditions : dict
        The learnt conditions by parameter.
    unexplained : bool
        Whether some absences have no explanation.
    constants : dict or None
        Values of parameters with a single one, if they matter.
    """

    distributions: dict[str, BaseDistribution]
    conditions: dict[str, Condition]
    unexplained: bool
    constants: dict[str, Any] | None

    def may_wait(self, former: SpaceRecipe, n_then: int, n_now: int) -> bool:
        """Whether an optimizer of a former recipe can be used for a while.

        It can while a wide space only gets new parameters, or further choices that activate one:
        each trial with the former parameters then has a row in the former space.

        Parameters
        ----------
        former : SpaceRecipe
            The recipe of the optimizer.
        n_then, n_now : int
            Numbers of finished trials when it was built, and now.

        Returns
        -------
        bool
            Whether it can.
        """
        if len(former.distributions) < WIDE_SPACE or n_now >= _GROWTH * n_then:
            return False
        if (self.unexplained, self.constants) != (former.unexplained, former.constants):
            return False
        for name, distribution in former.distributions.items():
            latest = self.distributions.get(name)
            # Optuna compares choices one by one in Python, which takes 2 ms for 5,000 of them.
            if latest is not distribution and latest != distribution:
                return False
            before, now = former.conditions.get(name), self.conditions.get(name)
            if before == now:
                continue
            if before is None or now is None or before.parent != now.parent:
                return False
            if not set(before.values) <= set(now.values):
                return False
        return True


def to_parameter(distribution: BaseDistribution) -> Parameter | None:
    """Translate a distribution; None if it cannot be one dimension of a model.

    A categorical distribution becomes the indices of its choices: those are hashable, whatever the
    choices are. Of equal choices, such as 1 and True, Optuna stores the first.
    """
    try:
        if isinstance(distribution, CategoricalDistribution):
            return Categorical(to_indices(distribution))
        if isinstance(distribution, IntDistribution | FloatDistribution):
            number: Callable[..., Parameter] = (
                Int if isinstance(distribution, IntDistribution) else Float
            )
            low, high = distribution.low, distribution.high
            return number(low, high, log=distribution.log, step=distribution.step)
    except ValueError:
        # A range too wide for arithmetic, for one.
        return None
    return None


def to_space(
    distributions: Mapping[str, BaseDistribution], conditions: Mapping[str, Condition]
) -> SearchSpace | None:
    """Translate a search space, with those conditions that its parameters can meet.

    Returns None if no distribution can be translated.
    """
    free = {name: to_parameter(distribution) for name, distribution in distributions.items()}
    parameters = {}
    for name, parameter in free.items():
        if parameter is not None:
            condition = _possible(conditions.get(name), free)
            parameters[name] = replace(parameter, condition=condition) if condition else parameter
    return SearchSpace(parameters) if parameters else None


def to_indices(distribution: CategoricalDistribution) -> tuple[int, ...]:
    """Return the indices of the choices, without those of choices that are equal to others."""
    choices = distribution.choices
    try:
        if len(set(choices)) == len(choices):
            return tuple(range(len(choices)))
    except TypeError:
        # Some choices have no hash, and Optuna looks for each among all.
        pass
    return tuple({int(distribution.to_internal_repr(choice)): None for choice in choices})


def _possible(
    condition: Condition | None, parameters: Mapping[str, Parameter | None]
) -> Condition | None:
    """Keep of a condition the values that its parent can take today."""
    parent = None if condition is None else parameters.get(condition.parent)
    if condition is None or parent is None:
        return None
    values = []
    for value in condition.values:
        try:
            parent.index(value)
        except (TypeError, ValueError):
            continue
        values.append(value)
    return Condition(condition.parent, tuple(values)) if values else None


def internal_of(distribution: BaseDistribution, value: Any) -> float | None:
    """Return Optuna's internal representation of a value; None if it has no finite one."""
    try:
        found = float(distribution.to_internal_repr(value))
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def values_under(
    distributions: Mapping[str, BaseDistribution], values: Mapping[str, Any]
) -> dict[str, float]:
    """Return values of parameters in the internal representation of some distributions.

    They need not be those that a trial had, as ranges and choices change. Parameters without a
    distribution, and values that have no internal representation, are left out.
    """
    found = {
        name: internal_of(distributions[name], value)
        for name, value in values.items()
        if name in distributions
    }
    return {name: value for name, value in found.items() if value is not None}


def nearest_number(distribution: BaseDistribution, internal: float) -> float | int | None:
    """Return the number of a range that is nearest to another one; None if it is no range.

    An integer of a range of integers, and a float of any other, whatever type the other number has.
    """
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        return None
    one: Any = distribution
    value = min(max(internal, one.low), one.high)
    if one.step is not None:
        value = min(one.low + round((value - one.low) / one.step) * one.step, one.high)
    if isinstance(one, FloatDistribution):
        return float(value)
    # Large integers have no float of their own.
    number: int = min(max(int(value), one.low), one.high)
    return number


def rounded_number(distribution: BaseDistribution, internal: float) -> float | int | None:
    """Return the number of a grid that another one is but for rounding; None if there is none.

    Optuna takes a number of a grid far from zero for one outside of it: it compares the distance
    from the lower end with 1e-8 of a step, which the floats there may be too coarse for.
    """
    nearest, one = nearest_number(distribution, internal), distribution
    if nearest is None or not isinstance(one, FloatDistribution) or one.step is None:
        return None
    error = ROUNDING * max(abs(one.low), abs(one.high))
    return nearest if abs(nearest - internal) <= error else None


def union(known: Any, latest: Any) -> Any:
    """Return the range that covers both, if their scales and grids allow for it."""
    is_range = isinstance(latest, FloatDistribution | IntDistribution)
    if type(known) is not type(latest) or not is_range or known.log != latest.log:
        return latest
    step = known.step
    if isinstance(latest, IntDistribution):
        # Grids that do not meet are parts of a finer one.
        step = math.gcd(known.step, latest.step, known.low - latest.low)
    elif step != latest.step or (step is not None and known.low != latest.low):
        return latest
    ends = {"low": min(known.low, latest.low), "high": max(known.high, latest.high)}
    return type(known)(**ends, log=known.log, step=step)


def joined(known: Any, latest: Any) -> Any:
    """Return a distribution of all values of two that are joined ones, or have one value each.

    Steps do not count, as they say nothing about a single value. Of distributions of different
    kinds it is the latest.
    """
    if type(known) is not type(latest):
        return latest
    if isinstance(latest, CategoricalDistribution):
        new = [one for one in latest.choices if internal_of(known, one) is None]
        return CategoricalDistribution((*known.choices, *new)) if new else known
    low, high = min(known.low, latest.low), max(known.high, latest.high)
    return type(latest)(low, high, log=known.log and latest.log)

"""Optuna's distributions as parameters of a search space."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from mondrian_bo.search_space import (
    Categorical,
    Condition,
    Float,
    Int,
    Parameter,
    SearchSpace,
)


def to_parameter(
    distribution: BaseDistribution, condition: Condition | None = None
) -> Parameter | None:
    """Translate a distribution; None if it cannot be one dimension of a model.

    A categorical distribution becomes the indices of its choices: those are hashable, whatever the
    choices are. Of equal choices, such as 1 and True, Optuna stores the first.
    """
    try:
        if isinstance(distribution, CategoricalDistribution):
            indices = {int(distribution.to_internal_repr(c)): None for c in distribution.choices}
            return Categorical(tuple(indices), condition=condition)
        if isinstance(distribution, IntDistribution | FloatDistribution):
            number: Callable[..., Parameter] = (
                Int if isinstance(distribution, IntDistribution) else Float
            )
            return number(
                distribution.low,
                distribution.high,
                log=distribution.log,
                step=distribution.step,
                condition=condition,
            )
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
    for name, distribution in distributions.items():
        condition = _possible(conditions.get(name), free)
        parameter = to_parameter(distribution, condition)
        if parameter is not None:
            parameters[name] = parameter
    return SearchSpace(parameters) if parameters else None


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

"""A user's `is_valid` beside parameters that are not all known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial

from mondrian_bo.optimizer.validation import check_answer
from mondrian_bo.search_space import RestrictedSpace, SearchSpace

FIXED = "fixed_params"
"""Name of the attribute in which Optuna keeps the values of an enqueued trial."""


def may_be_valid(
    is_valid: Callable[[dict[str, Any]], bool] | None, values: Mapping[str, Any]
) -> bool:
    """Whether a user's function accepts values, or misses one; None accepts all."""
    if is_valid is None:
        return True
    try:
        return check_answer(is_valid(dict(values)))
    except KeyError:
        return True


def choices_of(search_space: Mapping[str, BaseDistribution]) -> dict[str, tuple[Any, ...]]:
    """Return the choices of each categorical parameter."""
    return {
        name: one.choices
        for name, one in search_space.items()
        if isinstance(one, CategoricalDistribution)
    }


def accepts(
    is_valid: Callable[[dict[str, Any]], bool],
    choices: Mapping[str, Sequence[Any]],
    constants: Mapping[str, Any],
    params: Mapping[str, Any],
) -> bool:
    """Whether a user's function accepts a suggestion, or misses a parameter.

    `choices` are those of :func:`choices_of`; `params` has indices of them.
    """
    values = {**constants, **params}
    for name, of_name in choices.items():
        if name in params:
            values[name] = of_name[params[name]]
    return may_be_valid(is_valid, values)


def fixed_part(
    is_valid: Callable[[dict[str, Any]], bool],
    trial: FrozenTrial,
    search_space: Mapping[str, BaseDistribution],
    space: SearchSpace,
    constants: Mapping[str, Any] | None,
) -> SearchSpace | None:
    """Return the part of a space that has the values which the user has set for a trial.

    None is the whole space, also if these values are not valid themselves.
    """
    fixed = trial.system_attrs.get(FIXED, {})
    internal = {}
    for name in fixed.keys() & set(space):
        try:
            value = search_space[name].to_internal_repr(fixed[name])
            space[name].to_unit(value)
        except (TypeError, ValueError):
            # It is out of range.
            continue
        internal[name] = value
    if not internal or not may_be_valid(is_valid, {**(constants or {}), **fixed}):
        return None
    return RestrictedSpace(space, internal)

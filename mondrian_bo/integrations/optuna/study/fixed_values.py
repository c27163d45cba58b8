"""Values that the user has set for a trial: `study.enqueue_trial` and `PartialFixedSampler`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, PartialFixedSampler
from optuna.trial import FrozenTrial

from mondrian_bo.integrations.optuna.study.distributions import values_under
from mondrian_bo.search_space import RestrictedSpace, SearchSpace

_ENQUEUED = "fixed_params"
"""Name of the attribute in which Optuna keeps the values of an enqueued trial."""


def fixed_values(study: optuna.Study, trial: FrozenTrial) -> dict[str, Any]:
    """Return the values that the user has set for a trial.

    Those of an enqueued trial replace those of a `PartialFixedSampler`.
    """
    return {**unwrapped(study)[1], **trial.system_attrs.get(_ENQUEUED, {})}


def unwrapped(study: optuna.Study) -> tuple[BaseSampler, dict[str, Any]]:
    """Return the sampler inside of all `PartialFixedSampler`, and the values that these set.

    A `PartialFixedSampler` does not tell its base sampler which values it sets.
    """
    fixed: dict[str, Any] = {}
    sampler = study.sampler
    while isinstance(sampler, PartialFixedSampler):
        fixed = {**sampler._fixed_params, **fixed}
        sampler = sampler._base_sampler
    return sampler, fixed


def internal_enqueued(
    trial: FrozenTrial, distributions: Mapping[str, BaseDistribution]
) -> dict[str, float]:
    """Return the values that a trial was enqueued with, as :func:`values_under` does.

    Other workers know these before the trial asks for them.
    """
    return values_under(distributions, trial.system_attrs.get(_ENQUEUED, {}))


def with_fixed(
    search_space: dict[str, BaseDistribution],
    fixed: Mapping[str, Any],
    distributions: Mapping[str, BaseDistribution],
) -> dict[str, BaseDistribution]:
    """Return a search space with the fixed parameters that it lacks.

    A `PartialFixedSampler` takes its parameters out of the search space of its base sampler. The
    trials of the study differ in them all the same.

    Parameters
    ----------
    search_space : dict
        Distributions by parameter.
    fixed : mapping of str to object
        What :func:`fixed_values` returns.
    distributions : mapping of str to BaseDistribution
        All parameters that finished trials have had.

    Returns
    -------
    dict
        In the order of `distributions`; `search_space` itself if it lacks none of them.
    """
    if fixed.keys() & distributions.keys() <= search_space.keys():
        return search_space
    whole = {
        name: search_space.get(name, one)
        for name, one in distributions.items()
        if name in search_space or name in fixed
    }
    return {**whole, **search_space}


def fixed_part(
    fixed: Mapping[str, Any],
    search_space: Mapping[str, BaseDistribution],
    space: SearchSpace,
) -> SearchSpace | None:
    """Return the part of an optimizer's space that has fixed values; None is the whole space.

    Values that are not in the present ranges are left out.

    Parameters
    ----------
    fixed : mapping of str to object
        What :func:`fixed_values` returns.
    search_space : mapping of str to BaseDistribution
        The distributions that the space was made from.
    space : SearchSpace
        The space, which has numbers in place of choices.
    """
    internal = {}
    for name in fixed.keys() & set(space):
        try:
            value = search_space[name].to_internal_repr(fixed[name])
            space[name].to_unit(value)
        except (TypeError, ValueError):
            # It is out of range.
            continue
        internal[name] = value
    return RestrictedSpace(space, internal) if internal else None

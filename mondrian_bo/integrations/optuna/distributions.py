"""Optuna's distributions as parameters of a search space, and its values as unit coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from mondrian_bo.array_types import FloatArray
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


def encode(space: SearchSpace, trials: Sequence[Mapping[str, float]]) -> FloatArray:
    """Encode trials as rows of the unit cube, or beyond it where ranges have changed.

    Parameters
    ----------
    space : SearchSpace
        The present space.
    trials : sequence of m mappings of str to float
        Their values in Optuna's internal representation, which is the index for categorical
        parameters. Names that the space does not have are ignored.

    Returns
    -------
    float64 array of shape (m, d)
        NaN where a trial has no value, or none that has a place in the space: a number that is not
        positive where the space is logarithmic now.
    """
    rows = np.full((len(trials), space.n_dimensions), np.nan)
    for i, internal in enumerate(trials):
        for j, name in enumerate(space.names):
            if name in internal:
                rows[i, j] = _unit(space.parameters[j], internal[name])
    return rows


def complete(
    space: SearchSpace, rows: FloatArray, unasked: Sequence[Mapping[str, float]]
) -> FloatArray:
    """Fill the gaps of encoded trials with values that were proposed and not asked for.

    The outcome of a trial is then known where its proposal was. Otherwise an objective that leaves
    parameters out for reasons that no condition explains would be asked for the same again and
    again.

    Parameters
    ----------
    space : SearchSpace
        The present space.
    rows : float64 array of shape (m, d)
        The trials, as `encode` returns them.
    unasked : sequence of m mappings of str to float
        Values in Optuna's internal representation.

    Returns
    -------
    float64 array of shape (m, d)
        The filled rows. Parameters that conditions make inactive stay NaN.
    """
    if not any(name in space for one in unasked for name in one):
        return rows
    filled = np.where(np.isnan(rows), encode(space, unasked), rows)
    inactive = np.isnan(space.snap(np.nan_to_num(filled)))
    filled[inactive & np.isnan(rows)] = np.nan
    return filled


def _unit(parameter: Parameter, value: float) -> float:
    try:
        return parameter.to_unit(value)
    except (TypeError, ValueError):
        return math.nan if isinstance(parameter, Categorical) else _unit_outside(parameter, value)


def _unit_outside(parameter: Float | Int, value: float) -> float:
    """Continue the scale of a numeric parameter beyond its range and between its grid's values."""
    low, high = float(parameter.low), float(parameter.high)
    if parameter.step is not None:
        # Each value of a grid sits in the middle of its cell.
        low, high = low - 0.5 * parameter.step, high + 0.5 * parameter.step
    if high <= low:
        return 0.5
    if not parameter.log:
        return (value - low) / (high - low)
    if value <= 0.0:
        return math.nan
    return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))


def to_external(
    distributions: Mapping[str, BaseDistribution], params: Mapping[str, Any]
) -> dict[str, Any]:
    """Replace the indices of categorical choices by the choices."""
    external = dict(params)
    for name, index in params.items():
        distribution = distributions[name]
        if isinstance(distribution, CategoricalDistribution):
            external[name] = distribution.choices[index]
    return external

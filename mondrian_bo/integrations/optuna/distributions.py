"""Optuna's distributions as parameters of a search space, and its values as unit coordinates."""

from __future__ import annotations

import math
from collections.abc import Mapping

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
        if isinstance(distribution, IntDistribution):
            return Int(
                distribution.low,
                distribution.high,
                log=distribution.log,
                step=distribution.step,
                condition=condition,
            )
        if isinstance(distribution, FloatDistribution):
            return Float(
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


def encode(space: SearchSpace, internal: Mapping[str, float]) -> FloatArray:
    """Encode a trial as a row of the unit cube, or beyond it where ranges have changed.

    Parameters
    ----------
    space : SearchSpace
        The space of today.
    internal : mapping of str to float
        The trial's values in Optuna's internal representation, which is the index for categorical
        parameters; names that the space does not have are ignored.

    Returns
    -------
    float64 array of shape (d,)
        NaN where the trial has no value, or none that has a place in the space: a number that is
        not positive where the space is logarithmic now.
    """
    row = np.full(space.n_dimensions, np.nan)
    for j, (name, parameter) in enumerate(space.items()):
        if name in internal:
            row[j] = _unit(parameter, internal[name])
    return row


def complete(space: SearchSpace, row: FloatArray, unasked: Mapping[str, float]) -> FloatArray:
    """Fill gaps of an encoded trial with what was proposed for it and it did not ask for.

    Its outcome is then known where the proposal was: an objective that leaves parameters out for
    reasons that no condition explains would else be asked for the same again and again.

    Parameters
    ----------
    space : SearchSpace
        The space of today.
    row : float64 array of shape (d,)
        The trial, as `encode` returns it.
    unasked : mapping of str to float
        Values in Optuna's internal representation.

    Returns
    -------
    float64 array of shape (d,)
        `row` itself if there is nothing to fill. Parameters that conditions make inactive stay NaN.
    """
    if not any(name in space for name in unasked):
        return row
    filled = np.where(np.isnan(row), encode(space, unasked), row)
    inactive = np.isnan(space.snap(np.nan_to_num(filled)[None])[0])
    filled[inactive & np.isnan(row)] = np.nan
    return row if np.array_equal(filled, row, equal_nan=True) else filled


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
    distributions: Mapping[str, BaseDistribution], params: Mapping[str, object]
) -> dict[str, object]:
    """Replace the indices of categorical choices by the choices."""
    external = dict(params)
    for name, index in params.items():
        distribution = distributions[name]
        if isinstance(distribution, CategoricalDistribution) and isinstance(index, int):
            external[name] = distribution.choices[index]
    return external

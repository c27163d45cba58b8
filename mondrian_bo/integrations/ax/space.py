"""Ax search spaces as search spaces of the optimizer, and their parameterizations as rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from ax.core.parameter import (
    ChoiceParameter,
    DerivedParameter,
    FixedParameter,
    Parameter,
    ParameterType,
    RangeParameter,
)
from ax.core.search_space import SearchSpace as AxSearchSpace
from ax.core.types import TParameterization, TParamValue
from ax.exceptions.core import UnsupportedError, UserInputError

from mondrian_bo.search_space import (
    Categorical,
    Condition,
    Float,
    Int,
    LinearInequality,
    RestrictedSpace,
    SearchSpace,
)
from mondrian_bo.search_space import Parameter as OurParameter
from mondrian_bo.search_space.lenient_encoding import encode_leniently
from mondrian_bo.shared.argument_checks import is_number
from mondrian_bo.shared.array_types import FloatArray


class _Column(NamedTuple):
    """A parameter of the optimizer, and the conversion of Ax's values to its values and back."""

    parameter: OurParameter
    inward: Callable[[Any], Any]
    outward: Callable[[Any], Any]


class TranslatedSpace:
    """An Ax search space in terms of the optimizer.

    Ranges become `Float` or `Int`, unordered choices `Categorical`, and ordered choices `Int`, by
    rank. Dependent parameters have conditions. Fixed and derived parameters are not searched; they
    are added when points are decoded.

    Parameters
    ----------
    search_space : ax.core.search_space.SearchSpace
        The space. Later changes to it have no effect here.

    Attributes
    ----------
    space : SearchSpace
        The searched parameters.

    Raises
    ------
    ax.exceptions.core.UnsupportedError
        If there is a task or fidelity parameter, an equality constraint, or nothing to search.
    """

    def __init__(self, search_space: AxSearchSpace) -> None:
        parameters: dict[str, Parameter] = {
            name: parameter.clone() for name, parameter in search_space.parameters.items()
        }
        self._ax_parameters = parameters
        activations = _activations(parameters)
        columns: dict[str, _Column] = {}
        self._fixed: dict[str, FixedParameter] = {}
        self._derived: dict[str, DerivedParameter] = {}
        for name, parameter in parameters.items():
            if parameter.is_fidelity or getattr(parameter, "is_task", False):
                raise UnsupportedError(
                    f"Parameter {name!r}: task and fidelity parameters are not supported. "
                    "MondrianOptimizer and MondrianSampler have an argument `fidelity`."
                )
            if isinstance(parameter, FixedParameter):
                self._fixed[name] = parameter
            elif isinstance(parameter, DerivedParameter):
                self._derived[name] = parameter
            else:
                columns[name] = _column(parameter)
        self._columns: dict[str, _Column] = {}
        # Fixed parameters that can be active, with their conditions.
        self._fixed_conditions: dict[str, Condition | None] = {}
        for name in [*columns, *self._fixed]:
            try:
                condition = self._condition(name, activations, columns)
            except _NeverActiveError:
                continue
            if name in self._fixed:
                self._fixed_conditions[name] = condition
            else:
                column = columns[name]
                conditioned = replace(column.parameter, condition=condition)
                self._columns[name] = column._replace(parameter=conditioned)
        if not self._columns:
            raise UnsupportedError("There is nothing to search: all parameters are fixed.")
        self.space = SearchSpace({n: column.parameter for n, column in self._columns.items()})
        self._is_conditional = any(p.condition is not None for p in self.space.values())
        self._inequalities = tuple(self._inequality(c) for c in search_space.parameter_constraints)
        self._part: tuple[dict[str, TParamValue], SearchSpace] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TranslatedSpace):
            return NotImplemented
        return self.has_rows_of(other) and self._inequalities == other._inequalities

    __hash__ = None  # type: ignore[assignment]

    def has_rows_of(self, other: TranslatedSpace) -> bool:
        """Whether rows mean the same in both spaces, which may have different constraints."""
        return self.space == other.space and self._ax_parameters == other._ax_parameters

    def encode(self, parameters: Mapping[str, Any]) -> FloatArray:
        """Encode a parameterization as a row.

        Parameters
        ----------
        parameters : mapping of str to object
            Ax's values; parameters that are not searched are ignored. A missing value is replaced
            by the parameter's ``backfill_value``, if it has one.

        Returns
        -------
        float64 array of shape (d,)
            Numbers outside the space have entries outside [0, 1]. An entry is NaN if the value is
            missing or cannot be encoded, or if the parameter is inactive.
        """
        inward: dict[str, Any] = {}
        for name, column in self._columns.items():
            value = parameters.get(name)
            if value is None or value != value:
                value = self._ax_parameters[name].backfill_value
            if value is not None:
                inward[name] = column.inward(value)
        row: FloatArray = encode_leniently(self.space, [inward])[0]
        if self._is_conditional:
            row[np.isnan(self.space.snap(np.nan_to_num(row)[None])[0])] = np.nan
        return row

    def contains(self, row: FloatArray) -> bool:
        """Whether an encoded point belongs to the space; constraints are ignored."""
        if not self._is_conditional and np.isnan(row).any():
            return False
        filled = np.nan_to_num(row)
        snapped = self.space.snap(filled[None])[0]
        if not np.array_equal(np.isnan(snapped), np.isnan(row)):
            return False
        return bool(np.allclose(np.nan_to_num(snapped), filled, rtol=0.0, atol=1e-9))

    def decode(self, params: Mapping[str, object]) -> TParameterization:
        """Return the Ax parameterization of active parameters' values."""
        decoded: TParameterization = {}
        for name, parameter in self._ax_parameters.items():
            if name in params:
                decoded[name] = parameter.cast(self._columns[name].outward(params[name]))
            elif name in self._fixed_conditions and self._holds(
                self._fixed_conditions[name], params
            ):
                decoded[name] = self._fixed[name].value
        for name, derived in self._derived.items():
            decoded[name] = derived.compute(parameters=decoded)
        return decoded

    def with_fixed(
        self, arm: TParameterization, fixed: Mapping[str, TParamValue]
    ) -> TParameterization:
        """Return an arm of the part that has some values, without the encoding's rounding.

        A value of a choice or a step is that of the space, which the given one equals up to
        rounding; derived values stay as computed.
        """
        names = (arm.keys() & fixed.keys()) - self._derived.keys()
        return arm | {name: self._own_value(name, fixed[name]) for name in names}

    def _own_value(self, name: str, value: TParamValue) -> TParamValue:
        """Return the parameter's own value that equals a given one up to rounding."""
        parameter = self._ax_parameters[name]
        if isinstance(parameter, ChoiceParameter):
            index = _index_of(parameter.values, value)
            return value if index is None else parameter.values[index]
        return parameter.cast(value)

    def check_derived(self, fixed: Mapping[str, TParamValue]) -> None:
        """Raise an error if values contradict derived parameters among them.

        Raises
        ------
        ax.exceptions.core.UserInputError
            If the value of a derived parameter is not the one that follows from the others.
        """
        for name in self._derived.keys() & fixed.keys():
            try:
                computed = [self._derived[name].compute(parameters=dict(fixed))]
            except (KeyError, ValueError):
                computed = []
            if _index_of(computed, fixed[name]) is None:
                raise UserInputError(
                    f"Parameter {name!r} is derived from others: it cannot be fixed to "
                    f"{fixed[name]!r}."
                )

    def restricted(self, fixed: Mapping[str, TParamValue]) -> SearchSpace:
        """Return the part of the space that has the given values and satisfies all constraints.

        Parameters
        ----------
        fixed : mapping of str to object
            Ax's values.

        Returns
        -------
        SearchSpace
            The part.

        Raises
        ------
        ax.exceptions.core.UserInputError
            If a name or a value does not belong to the space, or if the part is empty.
        """
        self.check_derived(fixed)
        held = {name: value for name, value in fixed.items() if name not in self._derived}
        for name in list(held):
            if name in self._fixed:
                if held[name] != self._fixed[name].value:
                    raise UserInputError(
                        f"Parameter {name!r} is {self._fixed[name].value!r}: "
                        f"it cannot be fixed to {held[name]!r}."
                    )
                del held[name]
                continue
            parameter = self._ax_parameters.get(name)
            if (
                isinstance(parameter, ChoiceParameter)
                and _index_of(parameter.values, held[name]) is None
            ):
                raise UserInputError(
                    f"No candidates within the restrictions: parameter {name!r} cannot be fixed "
                    f"to {held[name]!r}, it is one of {list(parameter.values)}."
                )
        if not held and not self._inequalities:
            return self.space
        if self._part is not None and self._part[0] == held:
            return self._part[1]
        try:
            inward = {
                name: self._columns[name].inward(value) if name in self._columns else value
                for name, value in held.items()
            }
            part = RestrictedSpace(self.space, inward, self._inequalities)
        except (KeyError, TypeError, ValueError) as error:
            raise UserInputError(f"No candidates within the restrictions: {error}") from error
        self._part = held, part
        return part

    def _condition(
        self,
        name: str,
        activations: Mapping[str, tuple[str, list[TParamValue]]],
        columns: Mapping[str, _Column],
    ) -> Condition | None:
        """Return a parameter's condition, with fixed parents resolved; None if always active."""
        if name not in activations:
            return None
        parent, values = activations[name]
        if parent in self._fixed:
            if self._fixed[parent].value not in values:
                raise _NeverActiveError
            return self._condition(parent, activations, columns)
        # Raises if the parent itself is never active.
        self._condition(parent, activations, columns)
        return Condition(parent, tuple(columns[parent].inward(value) for value in values))

    def _holds(self, condition: Condition | None, params: Mapping[str, object]) -> bool:
        """Return whether the values of active parameters meet a condition; None always holds."""
        return condition is None or (
            condition.parent in params and params[condition.parent] in condition.values
        )

    def _inequality(self, constraint: Any) -> LinearInequality:
        """Translate a parameter constraint of Ax, with fixed parameters in its bound."""
        if constraint.is_equality:
            raise UnsupportedError(f"Equality constraints are not supported: {constraint}.")
        bound = float(constraint.bound)
        weights: dict[str, float] = {}
        for name, weight in constraint.constraint_dict.items():
            if name in self._fixed:
                bound -= float(weight) * float(self._fixed[name].value)
                continue
            lowest, step = _line_of(self._ax_parameters[name])
            if name in self._columns:
                bound -= float(weight) * lowest
                weights[name] = float(weight) * step
        return LinearInequality(weights, bound)


class _NeverActiveError(Exception):
    """A parameter is never active, because of the fixed value of its parent."""


def _line_of(parameter: Parameter) -> tuple[float, float]:
    """Return the lowest value and the step of a range, in units of its column.

    Raises
    ------
    ax.exceptions.core.UnsupportedError
        If values are no linear function of those in the column.
    """
    if isinstance(parameter, RangeParameter):
        if parameter.logit_scale:
            raise UnsupportedError(
                f"Constraints are not supported on {parameter.name!r}, a range with a logit scale."
            )
        return 0.0, 1.0
    is_numeric = parameter.parameter_type in (ParameterType.INT, ParameterType.FLOAT)
    if isinstance(parameter, ChoiceParameter) and parameter.is_ordered and is_numeric:
        values = np.array(parameter.values, dtype=np.float64)
        steps = np.diff(values)
        if len(steps) and np.allclose(steps, steps[0], rtol=1e-6, atol=0.0):
            return float(values[0]), float((values[-1] - values[0]) / len(steps))
    raise UnsupportedError(
        "Constraints are supported on ranges and on equally spaced ordered numbers, not on "
        f"{parameter.name!r}."
    )


def _index_of(values: Sequence[Any], value: object) -> int | None:
    """Return the index of a value; None if there is none.

    Numbers are equal up to rounding: Ax computes the values of a range with steps.
    """
    if value in values:
        return values.index(value)
    if is_number(value):
        for i, one in enumerate(values):
            if is_number(one) and math.isclose(one, value, rel_tol=1e-9, abs_tol=1e-12):
                return i
    return None


def _activations(
    parameters: Mapping[str, Parameter],
) -> dict[str, tuple[str, list[TParamValue]]]:
    """Return the parent of each dependent parameter, and the parent's values that activate it."""
    found: dict[str, tuple[str, list[TParamValue]]] = {}
    for parent, parameter in parameters.items():
        if not parameter.is_hierarchical:
            continue
        for value, children in parameter.dependents.items():
            for child in children:
                found.setdefault(child, (parent, []))[1].append(value)
    return found


def _column(parameter: Parameter) -> _Column:
    """Translate a range or a choice; its condition is added later."""
    if isinstance(parameter, RangeParameter):
        if parameter.parameter_type == ParameterType.INT:
            whole = Int(int(parameter.lower), int(parameter.upper), log=parameter.log_scale)
            return _Column(whole, _same, _same)
        if parameter.logit_scale:
            return _Column(Float(_logit(parameter.lower), _logit(parameter.upper)), _logit, _expit)
        real = Float(float(parameter.lower), float(parameter.upper), log=parameter.log_scale)
        return _Column(real, _same, _same)
    assert isinstance(parameter, ChoiceParameter)
    values = list(parameter.values)
    if parameter.is_ordered:
        return _Column(
            Int(0, len(values) - 1),
            lambda value: math.nan if (i := _index_of(values, value)) is None else i,
            lambda rank: values[rank],
        )
    return _Column(Categorical(tuple(values)), _same, _same)


def _same(value: Any) -> Any:
    return value


def _logit(value: float) -> float:
    """Return the logit of a value; NaN where it is undefined, as attached arms may be there."""
    if not 0.0 < value < 1.0:
        return math.nan
    return math.log(value) - math.log1p(-value)


def _expit(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-value))

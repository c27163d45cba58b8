"""Checks of what users tell the optimizer: directions, names of constraints, and values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from mondrian_bo.shared.argument_checks import is_truth_value
from mondrian_bo.shared.array_types import FloatArray

Direction: TypeAlias = Literal["minimize", "maximize"]
"""Direction in which values are better."""

MOST_OBJECTIVES = 4
"""Largest number of objectives: the cost of hypervolumes grows exponentially with it."""


def check_directions(
    direction: Direction, directions: Sequence[Direction] | None
) -> tuple[Direction, ...]:
    """Return the directions of all objectives.

    Raises
    ------
    TypeError, ValueError
        If one of them is unknown, if there are none or too many, or if both arguments are given.
    """
    if directions is None:
        if direction not in ("minimize", "maximize"):
            raise ValueError(f"`direction` must be 'minimize' or 'maximize', got {direction!r}.")
        return (direction,)
    if direction != "minimize":
        raise ValueError("Only one of `direction` and `directions` may be given, got both.")
    if isinstance(directions, str) or not isinstance(directions, Iterable):
        raise TypeError(f"`directions` must be a sequence of directions, got {directions!r}.")
    many = tuple(directions)
    if not 1 <= len(many) <= MOST_OBJECTIVES:
        raise ValueError(
            f"`directions` must have 1 to {MOST_OBJECTIVES} entries, got {len(many)}. More "
            "objectives can be made constraints, or be combined."
        )
    for one in many:
        if one not in ("minimize", "maximize"):
            raise ValueError(
                f"`directions` must hold 'minimize' or 'maximize', got {directions!r}."
            )
    return many


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of constraints.

    Raises
    ------
    TypeError, ValueError
        If they are not distinct strings.
    """
    is_sequence = isinstance(names, Iterable) and not isinstance(names, str)
    if not is_sequence or not all(isinstance(name, str) for name in names):
        raise TypeError(f"`constraints` must be a sequence of names, got {names!r}.")
    if len(set(names)) < len(names):
        raise ValueError(f"`constraints` must be distinct names, got {names!r}.")
    return tuple(names)


def check_answer(answer: object) -> bool:
    """Return what a user's `is_valid` returned.

    Raises
    ------
    TypeError
        If it is neither True nor False.
    """
    if is_truth_value(answer):
        return bool(answer)
    raise TypeError(f"`is_valid` must return True or False, got {answer!r}.")


def count_trials(params: object) -> int | None:
    """Return the number of trials whose parameters are told; None for one, not in a sequence.

    Raises
    ------
    TypeError
        If `params` is neither a mapping nor a sequence of mappings.
    """
    if isinstance(params, Mapping):
        return None
    if isinstance(params, Collection) and all(isinstance(one, Mapping) for one in params):
        return len(params)
    raise TypeError(f"`params` must be a mapping or a sequence of mappings, got {params!r}.")


def seed_sequence(seed: int | Sequence[int] | None) -> np.random.SeedSequence:
    """Return the seeds that the argument `seed` stands for.

    Raises
    ------
    TypeError, ValueError
        If it is not a non-negative integer, a sequence of them, or None.
    """
    try:
        if isinstance(seed, bool):
            raise TypeError
        return np.random.SeedSequence(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"`seed` must be a non-negative integer, a sequence of them or None, got {seed!r}."
        ) from None


def check_reference(reference: Sequence[float] | None, n_objectives: int) -> FloatArray:
    """Return the reference point, shape (K,), NaN where it is not given.

    Raises
    ------
    TypeError, ValueError
        If it does not have one number for each objective, finite or NaN.
    """
    if reference is None:
        return np.full(n_objectives, np.nan)
    if not isinstance(reference, Iterable):
        raise TypeError(f"`reference_point` must be a sequence of numbers, got {reference!r}.")
    numbers = [_number(one, reference, "reference_point") for one in reference]
    if len(numbers) != n_objectives:
        raise ValueError(
            f"`reference_point` must have {n_objectives} values, one for each direction, got "
            f"{reference!r}."
        )
    if np.isinf(numbers).any():
        raise ValueError(f"`reference_point` must be finite, or NaN for none, got {reference!r}.")
    return np.array(numbers)


def check_values(value: object, n_trials: int | None, n_objectives: int) -> FloatArray:
    """Return the values of trials as an array of shape (m, K).

    Parameters
    ----------
    value : object
        What the user told.
    n_trials : int or None
        Number m of trials; None for one trial that is not in a sequence.
    n_objectives : int
        Number K of values of a trial.

    Raises
    ------
    TypeError
        If something is not a number.
    ValueError
        If the shape is wrong.
    """
    try:
        array = np.asarray(value, dtype=object)
    except ValueError:
        raise ValueError(f"`value` must have {n_objectives} values for each trial.") from None
    numbers = np.array([_number(one, value, "value") for one in array.ravel()], dtype=np.float64)
    m = 1 if n_trials is None else n_trials
    if n_objectives == 1:
        if len(numbers) != m:
            raise ValueError(f"Got {m} trials, but {len(numbers)} values.")
    elif array.shape != ((n_objectives,) if n_trials is None else (m, n_objectives)):
        expected = f"{n_objectives} values" + ("" if n_trials is None else f" for {m} trials")
        raise ValueError(f"`value` must have {expected}, one for each direction, got {value!r}.")
    return numbers.reshape(m, n_objectives)


def check_constraints(
    constraints: object, n_trials: int | None, names: tuple[str, ...]
) -> FloatArray:
    """Return the values of constraints as an array of shape (m, q), NaN where one is missing.

    Parameters
    ----------
    constraints : object
        What the user told: None, or for each trial a mapping by name or a sequence.
    n_trials : int or None
        Number m of trials; None for one trial that is not in a sequence.
    names : tuple of str
        Names of the q constraints.

    Raises
    ------
    TypeError, ValueError
        If a value is not a number, or numbers or names are not those of the constraints.
    """
    m = 1 if n_trials is None else n_trials
    values = np.full((m, len(names)), np.nan)
    if constraints is None:
        return values
    many = [constraints] if n_trials is None else list(_sequence(constraints))
    if len(many) != m:
        raise ValueError(f"Got {m} trials, but constraints of {len(many)}.")
    for i, one in enumerate(many):
        if isinstance(one, Mapping):
            unknown = [name for name in one if name not in names]
            if unknown:
                raise ValueError(
                    f"`constraints` has unknown names {unknown!r}; those of the optimizer are "
                    f"{list(names)!r}."
                )
            for name, value in one.items():
                values[i, names.index(name)] = _number(value, constraints, "constraints")
            continue
        numbers = [_number(value, constraints, "constraints") for value in _sequence(one)]
        if len(numbers) != len(names):
            raise ValueError(
                f"`constraints` must have {len(names)} values for each trial, got {one!r}."
            )
        values[i] = numbers
    return values


def _sequence(values: object) -> Sequence[object]:
    if isinstance(values, np.ndarray):
        values = list(values)
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise TypeError(f"`constraints` must be a mapping or a sequence, got {values!r}.")
    return values


def _number(value: object, whole: object, name: str) -> float:
    if not isinstance(value, str | bytes):
        try:
            return float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            pass
    raise TypeError(f"`{name}` must be a number or a sequence of numbers, got {whole!r}.")

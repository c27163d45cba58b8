"""Trials of earlier studies as rows of the present space."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mondrian_bo.search_space import Parameter, SearchSpace
from mondrian_bo.search_space.lenient_encoding import lenient_entry
from mondrian_bo.shared.array_types import BoolArray, FloatArray, IntArray

_MOST_TRIALS = 200
"""Largest number of trials of an earlier study that are learnt: those of one Gaussian process."""

_FARTHEST = 1.0
"""Largest distance from the present range, in units of it, at which a trial is learnt; our
choice: in a much wider earlier range the scale of the present one is not resolved."""


N_START = 6
"""Largest number of first trials with earlier studies: good ones of these and quasi-random ones in
turn; our choice."""


class EarlierTrials(NamedTuple):
    """Trials of an earlier study, encoded in the present space.

    Attributes
    ----------
    name : str
        Name of the study, for messages.
    rows : float64 array of shape (m, d)
        Encoded points, as `RowOptimizer.tell_rows` takes them. A column without any value belongs
        to a parameter that the study lacks.
    values : float64 array of shape (m,)
        Their values, not NaN, in the direction of the present study.
    is_feasible : bool array of shape (m,) or None, default=None
        Which of them violate no constraint, and may be first trials; None is all.
    """

    name: str
    rows: FloatArray
    values: FloatArray
    is_feasible: BoolArray | None = None


ToldTrials: TypeAlias = tuple[Sequence[Mapping[str, Any]], Sequence[float]]
"""Parameters and values of the trials of an earlier study."""


def encode_told(
    space: SearchSpace, studies: Sequence[EarlierTrials | ToldTrials]
) -> list[EarlierTrials]:
    """Return the trials of earlier studies as rows of a space.

    Parameters
    ----------
    space : SearchSpace
        The present space.
    studies : sequence of (params, values) or EarlierTrials
        The studies, which are called ``warm_start[0]`` and so on. Those that are encoded already
        are returned unchanged.

    Raises
    ------
    TypeError
        If `studies` is not a sequence, or a study is neither.
    ValueError
        If parameters and values differ in number, or no trial has a place in the space.

    Warns
    -----
    UserWarning
        If no value of a parameter has a place in the space.
    """
    if isinstance(studies, Mapping | str) or not isinstance(studies, Iterable):
        raise TypeError(
            f"`warm_start` must be a list of studies, each a pair of params and values, got "
            f"{studies!r}."
        )
    encoded = []
    for k, study in enumerate(studies):
        name = f"warm_start[{k}]"
        if isinstance(study, EarlierTrials):
            n_trials = len(study.values)
            if n_trials == 0 or study.rows.shape != (n_trials, space.n_dimensions):
                raise ValueError(
                    f"`{name}` must have a row of {space.n_dimensions} entries for each value, and "
                    f"at least one; got shapes {study.rows.shape} and {study.values.shape}."
                )
            encoded.append(study)
            continue
        try:
            params, values = study
            n_trials, told = len(params), np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"`{name}` must be a pair of params and values, got {study!r}."
            ) from None
        if told.shape != (n_trials,) or not all(isinstance(one, Mapping) for one in params):
            raise ValueError(
                f"`{name}` must have one mapping of parameters for each value, got {n_trials} "
                f"and an array of shape {told.shape}."
            )
        trials = encode_with_warnings(name, space, params, told, (params, space))
        if not len(trials.values):
            raise ValueError(
                f"`{name}` has no trial with a value and with parameters in or near the space, "
                f"which has {list(space)}."
            )
        encoded.append(trials)
    return encoded


def encode_earlier(
    name: str,
    space: SearchSpace,
    params: Sequence[Mapping[str, Any]],
    values: Sequence[float] | FloatArray,
    is_feasible: BoolArray | None = None,
) -> tuple[EarlierTrials, list[str]]:
    """Encode the trials of an earlier study as far as they fit into a space.

    Parameters are matched by name, and by their values: numbers for `Float` and `Int`, known
    choices for `Categorical`. A number outside of the present range is encoded beyond the unit
    cube. A trial is left out if its value is NaN, or if it has an unknown choice, or a number
    farther from the range than the range is wide. Of more than 200 trials the 50 best, the
    50 worst and 100 others are kept, which are spread over the study.

    Parameters
    ----------
    name : str
        Name of the study, for messages.
    space : SearchSpace
        The present space.
    params : sequence of m mappings
        Parameters by name. Names that the space does not have are ignored.
    values : sequence of m floats
        Their values; larger or smaller is better as in the present study.
    is_feasible : bool array of shape (m,) or None, default=None
        Which of them violate no constraint; None is all.

    Returns
    -------
    trials : EarlierTrials
        Without trials if nothing fits.
    conflicts : list of str
        Parameters that both have and of which no earlier value has a place in the present range or
        choices. They count as parameters that the earlier study lacks.
    """
    told = np.asarray(values, dtype=np.float64)
    rows = np.full((len(params), space.n_dimensions), np.nan)
    fits = ~np.isnan(told)
    conflicts = []
    for j, (parameter_name, parameter) in enumerate(space.items()):
        having = [i for i, one in enumerate(params) if parameter_name in one]
        if not having:
            continue
        rows[having, j] = [position_of(parameter, params[i][parameter_name]) for i in having]
        lost = np.isnan(rows[having, j])
        if lost.all():
            conflicts.append(parameter_name)
        else:
            fits[np.array(having)[lost]] = False
    fits &= ~np.isnan(rows).all(axis=1)
    kept = np.flatnonzero(fits)
    kept = kept[_thinned(told[kept])]
    feasible = None if is_feasible is None else is_feasible[kept]
    return EarlierTrials(name, rows[kept], told[kept], feasible), conflicts


def encode_with_warnings(
    name: str,
    space: SearchSpace,
    params: Sequence[Mapping[str, Any]],
    values: Sequence[float] | FloatArray,
    shown: tuple[Sequence[Mapping[str, Any]], Mapping[str, object]],
    is_feasible: BoolArray | None = None,
) -> EarlierTrials:
    """Encode the trials of an earlier study, and warn of the parameters that are ignored.

    Parameters
    ----------
    name, space, params, values, is_feasible
        See :func:`encode_earlier`.
    shown : tuple of (sequence of m mappings, mapping)
        The parameters of the trials and those of the present study, as warnings show them.
    """
    trials, conflicts = encode_earlier(name, space, params, values, is_feasible)
    former, present = shown
    for parameter in conflicts:
        example = next(one[parameter] for one in former if parameter in one)
        warnings.warn(
            f"Parameter {parameter!r} of the earlier study {name!r} is ignored: none of its "
            f"values, such as {example!r}, has a place in {present[parameter]!r}.",
            UserWarning,
            stacklevel=3,
        )
    return trials


def position_of(parameter: Parameter, value: object) -> float:
    """Return the entry of a row; NaN if there is none, or it is too far from the range."""
    position = lenient_entry(parameter, value)
    return position if -_FARTHEST <= position <= 1.0 + _FARTHEST else math.nan


def _thinned(values: FloatArray) -> IntArray:
    """Return the indices of at most `_MOST_TRIALS` trials: extreme ones, and others in steps."""
    if len(values) <= _MOST_TRIALS:
        return np.arange(len(values))
    # The direction is not known here: a quarter of the trials from each end.
    order = np.argsort(values, kind="stable")
    quarter = _MOST_TRIALS // 4
    middle = np.sort(order[quarter:-quarter])
    spread = middle[np.linspace(0, len(middle) - 1, _MOST_TRIALS - 2 * quarter).astype(int)]
    return np.sort(np.concatenate([order[:quarter], spread, order[-quarter:]]))

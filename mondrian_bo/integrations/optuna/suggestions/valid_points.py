"""A user's `is_valid` beside parameters that are not all known."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial

from mondrian_bo.integrations.optuna.study.fixed_values import fixed_values, unwrapped
from mondrian_bo.integrations.optuna.study.study_reader import N_WITHOUT, StudyReader
from mondrian_bo.optimizer.shared.validation import check_answer


def constants_beside(
    is_valid: Callable[[dict[str, Any]], bool],
    study: optuna.Study,
    trial: FrozenTrial | None,
    reader: StudyReader,
    search_space: Mapping[str, BaseDistribution],
) -> dict[str, Any] | None:
    """Return the values of parameters that a search space lacks: constant or fixed ones.

    Fixed values that are not valid themselves do not count, as nothing beside them is valid. The
    trial's own values replace those of a `PartialFixedSampler`.
    """
    names = unwrapped(study)[1].keys() - search_space.keys()
    own = unwrapped(study)[1] if trial is None else fixed_values(study, trial)
    fixed = {name: value for name, value in own.items() if name in names}
    beside = {**(reader.constants or {}), **fixed}
    return beside if fixed and may_be_valid(is_valid, beside) else reader.constants


def valid_fixed(
    is_valid: Callable[[dict[str, Any]], bool],
    fixed: Mapping[str, Any],
    constants: Mapping[str, Any] | None,
) -> Mapping[str, Any]:
    """Return the values that a user has set for a trial; none if these are not valid themselves."""
    return fixed if may_be_valid(is_valid, {**(constants or {}), **fixed}) else {}


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


class ValidSuggestions:
    """Whether a user's function accepts a suggestion, or misses a parameter.

    Parameters
    ----------
    is_valid : callable
        The function.
    choices : mapping of str to sequence
        See :func:`choices_of`; suggestions have indices of them.
    constants : mapping
        Values of parameters that suggestions lack.
    reader : StudyReader
        The trials of the study.
    """

    def __init__(
        self,
        is_valid: Callable[[dict[str, Any]], bool],
        choices: Mapping[str, Sequence[Any]],
        constants: Mapping[str, Any],
        reader: StudyReader,
    ) -> None:
        self._is_valid = is_valid
        self._choices = choices
        self._constants = constants
        self._reader = reader
        self._checked: set[object] = set()

    def __call__(self, params: Mapping[str, Any]) -> bool:
        """Return the answer; warn once, after some trials, if no trial has what is missed."""
        values = {**self._constants, **params}
        for name, of_name in self._choices.items():
            if name in params:
                values[name] = of_name[params[name]]
        try:
            return check_answer(self._is_valid(values))
        except KeyError as error:
            self._check_name(error.args[0] if error.args else None)
            return True

    def _check_name(self, name: object) -> None:
        """Warn of a missed parameter that no trial has: once for each, after some trials."""
        is_name = isinstance(name, str) and name not in self._checked
        if not is_name or len(self._reader.finished) < N_WITHOUT:
            return
        self._checked.add(name)
        known = self._reader.names()
        if name not in known:
            warnings.warn(
                f"`is_valid` asks for the parameter {name!r}, which no trial has so far, and "
                f"points without it count as valid; the trials have {sorted(known)}.",
                UserWarning,
                stacklevel=2,
            )

"""Proposals: what a worker has chosen for a running trial, stored where other workers read it."""

from __future__ import annotations

import json

import optuna
from optuna.trial import FrozenTrial

from mondrian_bo.integrations.optuna.study.distributions import values_under

PUBLISHED_KEY = "mondrian:relative_params"
"""Prefix of the trial attributes that hold a proposal."""

_REPLACED_KEY = "mondrian:replaced_params"
"""The trial attribute that holds numbers proposed outside of the ranges that a trial asked for."""

_LONGEST_ATTRIBUTE = 2045
"""Length of the longest string that an attribute holds in a relational storage."""


def publish(
    study: optuna.Study, trial: FrozenTrial, internal: dict[str, float], n_before: int = 0
) -> int:
    """Store the proposal for a trial, so that other workers know it before the trial asks.

    Parameters
    ----------
    study, trial
        Where to store it.
    internal : dict
        The proposal, in Optuna's internal representation.
    n_before : int, default=0
        What this function returned for an earlier proposal that this one replaces.

    Returns
    -------
    int
        Length of the text that is stored.
    """
    # A text that replaces a longer one ends with spaces: parts of the longer one would remain. The
    # trial may have one of an earlier trial, see `published_parts`.
    n_former = sum(map(len, published_parts(trial)))
    text = json.dumps(internal).ljust(max(n_before, n_former))
    for i in range(0, len(text), _LONGEST_ATTRIBUTE):
        study._storage.set_trial_system_attr(
            trial._trial_id,
            f"{PUBLISHED_KEY}:{i // _LONGEST_ATTRIBUTE}",
            text[i : i + _LONGEST_ATTRIBUTE],
        )
    return len(text)


def published_parts(trial: FrozenTrial) -> list[str]:
    """Return the parts of the text that is stored for a trial.

    A trial that runs again, as its worker died, has those of the earlier trial at first.
    """
    parts: list[str] = []
    while (part := trial.system_attrs.get(f"{PUBLISHED_KEY}:{len(parts)}")) is not None:
        parts.append(part)
    return parts


def note_replaced(study: optuna.Study, trial: FrozenTrial, name: str, proposal: float) -> None:
    """Store the number that was proposed for a parameter, where the nearest one took its place.

    Parameters
    ----------
    study, trial
        Where to store it.
    name : str
        The parameter.
    proposal : float
        The number, in Optuna's internal representation.
    """
    text = json.dumps({**replaced_values(trial), name: proposal})
    # With hundreds of such parameters, the later ones are learnt as they were asked for.
    if len(text) <= _LONGEST_ATTRIBUTE:
        study._storage.set_trial_system_attr(trial._trial_id, _REPLACED_KEY, text)


def replaced_values(trial: FrozenTrial) -> dict[str, float]:
    """Return what :func:`note_replaced` has stored."""
    text = trial.system_attrs.get(_REPLACED_KEY)
    replaced: dict[str, float] = {} if text is None else json.loads(text)
    return replaced


def raw_running_values(trial: FrozenTrial) -> dict[str, float]:
    """Return the values of a running trial: those proposed, and those it has asked for.

    Choices have the numbers that the trial's own distributions give them, see
    `StudyReader.running_values`.
    """
    return {**proposed_values(trial), **internal_values(trial)}


def proposed_values(trial: FrozenTrial) -> dict[str, float]:
    """Return the values that were proposed for a trial."""
    parts = published_parts(trial)
    try:
        published: dict[str, float] = json.loads("".join(parts)) if parts else {}
    except json.JSONDecodeError:
        # Another worker is writing it right now.
        published = {}
    return published


def internal_values(trial: FrozenTrial) -> dict[str, float]:
    """Return the parameters that a trial has asked for, in Optuna's internal representation."""
    params, distributions = trial.params, trial.distributions
    try:
        return {name: one.to_internal_repr(params[name]) for name, one in distributions.items()}
    except ValueError:
        # Optuna stores an enqueued value outside of its distribution, with a warning.
        return values_under(distributions, trial.params)

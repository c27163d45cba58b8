"""Checks of the studies that users pass, and the signs of their objectives."""

from __future__ import annotations

import optuna
from optuna.study import StudyDirection


def check_study(study: object) -> None:
    """Raise a TypeError if an argument `study` is no study of Optuna."""
    if not isinstance(study, optuna.Study):
        raise TypeError(f"`study` must be an optuna.Study, got {study!r}.")


def check_single_objective(study: optuna.Study, name: str) -> None:
    """Raise an error if `study` is no study or has several objectives; `name` asks for one."""
    check_study(study)
    if len(study.directions) > 1:
        raise ValueError(f"`{name}` needs a study with a single objective.")


def check_argument_fits(study: optuna.Study, argument: str) -> None:
    """Raise a ValueError if a study has several objectives, and an argument of the sampler one."""
    if len(study.directions) > 1:
        raise ValueError(
            f"`{argument}` needs a study with one objective, and {study.study_name!r} has "
            f"{len(study.directions)}."
        )


def sign_of(study: optuna.Study, objective: int) -> float:
    """Return 1 if an objective is maximised, else -1."""
    return 1.0 if study.directions[objective] == StudyDirection.MAXIMIZE else -1.0

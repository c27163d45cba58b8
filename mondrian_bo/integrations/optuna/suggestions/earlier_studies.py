"""Trials of earlier Optuna studies, for `MondrianSampler(warm_start=...)`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.study import StudyDirection
from optuna.trial import TrialState

from mondrian_bo.integrations.optuna.study.distributions import (
    internal_of,
    nearest_number,
    to_parameter,
)
from mondrian_bo.integrations.optuna.study.study_checks import check_argument_fits
from mondrian_bo.integrations.optuna.study.trial_rows import is_feasible
from mondrian_bo.optimizer.earlier_studies.earlier_trials import (
    N_START,
    EarlierTrials,
    encode_with_warnings,
    position_of,
)
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.argument_checks import is_number
from mondrian_bo.shared.array_types import BoolArray

_SPACING = 10
"""Different first trials are so many parts of the earlier trials apart, in the order of values:
the very best ones are often next to each other."""


class EarlierStudy(NamedTuple):
    """The complete trials of an earlier study.

    Attributes
    ----------
    name : str
        Name of the study.
    direction : StudyDirection
        Its direction.
    params : list of dict
        Parameters of its trials, the best trial first.
    values : list of float
        Their values.
    is_feasible : bool array
        Which of them violate no constraint.
    """

    name: str
    direction: StudyDirection
    params: list[dict[str, Any]]
    values: list[float]
    is_feasible: BoolArray


class EarlierStudies:
    """Earlier studies, read when the sampler is made.

    Parameters
    ----------
    warm_start : sequence of optuna.Study
        The studies.

    Raises
    ------
    TypeError
        If `warm_start` is not a sequence of studies.
    ValueError
        If a study has several objectives, or no complete trial with a parameter.
    """

    def __init__(self, warm_start: Sequence[optuna.Study]) -> None:
        if isinstance(warm_start, optuna.Study | str) or not isinstance(warm_start, Sequence):
            raise TypeError(f"`warm_start` must be a list of studies, got {warm_start!r}.")
        self._studies = [_read(study) for study in warm_start]

    def __len__(self) -> int:
        return len(self._studies)

    def check(self, study: optuna.Study) -> None:
        """Raise a `ValueError` if the earlier studies cannot start a study."""
        check_argument_fits(study, "warm_start")
        for one in self._studies:
            if one.direction != study.direction:
                raise ValueError(
                    f"`warm_start`: study {one.name!r} has the direction {one.direction.name}, and "
                    f"{study.study_name!r} has {study.direction.name}."
                )

    def encode(
        self, distributions: Mapping[str, BaseDistribution], space: SearchSpace
    ) -> list[EarlierTrials]:
        """Return the trials as rows of the present space.

        Parameters
        ----------
        distributions : mapping of str to BaseDistribution
            The present distributions.
        space : SearchSpace
            The space that was made of them, in which a choice is its index.

        Returns
        -------
        list of EarlierTrials
            Without studies of which no trial has a place in the space.

        Warns
        -----
        UserWarning
            If none of a study's values of a parameter has a place in the space.
        """
        encoded = []
        for study in self._studies:
            params = [
                {name: _encoded(distributions[name], one[name]) for name in one if name in space}
                for one in study.params
            ]
            shown = study.params, distributions
            trials = encode_with_warnings(
                study.name, space, params, study.values, shown, study.is_feasible
            )
            if len(trials.values):
                encoded.append(trials)
        return encoded

    def first_value(
        self, number: int, name: str, distribution: BaseDistribution, default: Any
    ) -> Any:
        """Return the value of a good earlier trial, for a parameter that this study has not had.

        Parameters
        ----------
        number : int
            Number of the present trial. Every second one of the first six gets earlier values.
        name : str
            The parameter.
        distribution : BaseDistribution
            Its distribution.
        default : object
            What is returned otherwise, or if the earlier trial lacks the parameter, or has a value
            that is farther from the range than the range is wide.

        Returns
        -------
        object
            A number that the present range does not hold becomes the nearest one that it holds.
        """
        if number >= N_START or number % 2:
            return default
        turn, k = divmod(number // 2, len(self._studies))
        study = self._studies[k]
        usable = np.flatnonzero(study.is_feasible)
        if not len(usable):
            usable = np.arange(len(study.params))
        good = study.params[usable[turn * len(usable) // _SPACING]]
        internal = _encoded(distribution, good[name]) if name in good else None
        parameter = to_parameter(distribution)
        if internal is None or parameter is None or math.isnan(position_of(parameter, internal)):
            return default
        nearest = nearest_number(distribution, internal)
        return distribution.to_external_repr(internal) if nearest is None else nearest


def _read(study: optuna.Study) -> EarlierStudy:
    """Return the complete trials of an earlier study, the best first; raise if it is none."""
    if not isinstance(study, optuna.Study):
        raise TypeError(f"`warm_start` must hold optuna studies, got {study!r}.")
    if len(study.directions) > 1:
        raise ValueError(
            f"`warm_start`: study {study.study_name!r} has {len(study.directions)} objectives, and "
            "an earlier study must have one."
        )
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    trials = [trial for trial in trials if trial.params]
    if not trials:
        raise ValueError(
            f"`warm_start`: study {study.study_name!r} has no complete trial with a parameter."
        )
    maximize = study.direction == StudyDirection.MAXIMIZE
    trials.sort(key=lambda trial: trial.value or 0.0, reverse=maximize)
    return EarlierStudy(
        study.study_name,
        study.direction,
        [dict(trial.params) for trial in trials],
        [float(trial.values[0]) for trial in trials],
        np.array([is_feasible(trial) for trial in trials]),
    )


def _encoded(distribution: BaseDistribution, value: Any) -> Any:
    """Return the index of a choice or a number; None if the value is neither."""
    if isinstance(distribution, CategoricalDistribution):
        return internal_of(distribution, value)
    return value if is_number(value) else None

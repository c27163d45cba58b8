"""Reading experiments: which arms have outcomes, which failed, which are pending."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeGuard

from ax.core.batch_trial import BatchTrial
from ax.core.data import Data
from ax.core.data_utils import ExperimentData
from ax.core.experiment import Experiment
from ax.core.observation import ObservationFeatures
from ax.core.trial_status import TrialStatus

from mondrian_bo.integrations.ax.engine import Observation

Outcomes = dict[str, tuple[float, float]]
"""Mean and standard error of each metric by name."""

Parameters = Mapping[str, Any]
"""Values of an arm's parameters by name."""


class ArmReader:
    """Reads the outcomes of arms of finished trials, and looks up each arm once.

    Attributes
    ----------
    parameters : dict
        The parameterizations of arms with outcomes, by trial index and arm name.
    """

    def __init__(self) -> None:
        self.parameters: dict[Hashable, Parameters] = {}

    def read(self, experiment: Experiment, data: Data) -> dict[Hashable, Observation]:
        """Return the observations by trial index and arm name.

        Parameters
        ----------
        experiment : Experiment
            The experiment.
        data : Data
            Its data; of a metric with steps only the last one is read.

        Returns
        -------
        dict
            The observations of finished trials.
        """
        found: dict[tuple[int, str], Outcomes] = {}
        last: dict[tuple[int, str, str], float] = {}
        known = {metric.signature for metric in experiment.metrics.values()}
        # Building the frame `data.df` would take most of the time of a suggestion.
        for row in data._data_rows:
            if row.metric_signature not in known:
                continue
            key = row.trial_index, row.arm_name
            if row.step is not None:
                curve = (*key, row.metric_signature)
                if row.step < last.get(curve, -math.inf):
                    continue
                last[curve] = row.step
            _note(found.setdefault(key, {}), row.metric_signature, row.mean, row.se)
        observations = _finished(experiment, found)
        abandoned = _abandoned_arms(experiment)
        for trial_index, name in observations:
            if (trial_index, name) not in self.parameters:
                arms = experiment.trials[trial_index].arms_by_name
                if name in arms:
                    self.parameters[trial_index, name] = arms[name].parameters
        return {
            key: seen
            for key, seen in observations.items()
            if key in self.parameters and key not in abandoned
        }


def read_experiment_data(
    experiment: Experiment, data: ExperimentData
) -> tuple[dict[Hashable, Observation], dict[Hashable, Parameters]]:
    """Read the data that an adapter is given to learn.

    Returns
    -------
    observations, parameters : dict
        The observations and the parameterizations, by trial index and arm name.
    """
    frame = data.observation_data
    found: dict[tuple[int, str], Outcomes] = {}
    if len(frame):
        keys = [(key[0], key[1]) for key in frame.index.tolist()]
        for metric in frame["mean"].columns:
            means = frame["mean", metric].tolist()
            errors = frame["sem", metric].tolist()
            for key, mean, error in zip(keys, means, errors, strict=True):
                # With steps, a metric has its value in the row of its last step, else NaN.
                _note(found.setdefault(key, {}), metric, mean, error)
    names = [str(name) for name in data.arm_data.columns if name != "metadata"]
    values = zip(*(data.arm_data[name].tolist() for name in names), strict=True)
    arms = dict(zip(data.arm_data.index.tolist(), values, strict=True))
    observations: dict[Hashable, Observation] = {
        key: seen for key, seen in _finished(experiment, found).items() if key in arms
    }
    return observations, {key: dict(zip(names, arms[key], strict=True)) for key in observations}


def _finished(
    experiment: Experiment, found: Mapping[tuple[int, str], Outcomes]
) -> dict[tuple[int, str], Observation]:
    """Return the outcomes of finished trials; those of other trials may still change."""
    indices = experiment.trial_indices_by_status
    stopped = indices[TrialStatus.EARLY_STOPPED]
    finished = indices[TrialStatus.COMPLETED] | stopped
    return {
        key: Observation(outcomes, key[0] in stopped)
        for key, outcomes in found.items()
        if key[0] in finished
    }


def _abandoned_arms(experiment: Experiment) -> set[tuple[int, str]]:
    """Return the abandoned arms of trials that are not abandoned themselves."""
    return {
        (index, arm.name)
        for index, trial in experiment.trials.items()
        if isinstance(trial, BatchTrial)
        for arm in trial.abandoned_arms
    }


def failed_arms(experiment: Experiment) -> dict[Hashable, Parameters]:
    """Return the parameterizations of arms whose trials failed or were abandoned."""
    indices = experiment.trial_indices_by_status
    return {
        (index, arm.name): arm.parameters
        for index in sorted(indices[TrialStatus.FAILED] | indices[TrialStatus.ABANDONED])
        for arm in experiment.trials[index].arms
    }


def pending_arms(
    pending: Mapping[str, Iterable[ObservationFeatures]] | None, experiment: Experiment
) -> list[Parameters]:
    """Return the distinct parameterizations that are pending for any metric.

    Arms of abandoned trials are left out: Ax keeps them pending, but they get no outcome.
    """
    abandoned = experiment.trial_indices_by_status[TrialStatus.ABANDONED]
    found: dict[str, Parameters] = {}
    for features in (pending or {}).values():
        for one in features:
            if one.trial_index not in abandoned:
                found.setdefault(repr(sorted(one.parameters.items())), one.parameters)
    return list(found.values())


def baseline_outcomes(
    experiment: Experiment, observations: Mapping[Hashable, Observation]
) -> dict[str, float]:
    """Return the outcomes of the status quo by metric, from the latest trial that has it."""
    arm = experiment.status_quo
    outcomes: dict[str, float] = {}
    if arm is not None:
        for key, seen in observations.items():
            if isinstance(key, tuple) and key[1] == arm.name:
                outcomes.update({metric: mean for metric, (mean, _) in seen.outcomes.items()})
    return outcomes


def _note(outcomes: Outcomes, metric: str, mean: float | None, error: float | None) -> None:
    """Store an outcome unless it is missing or NaN."""
    # Unknown errors are one NaN object, so that equal observations compare as equal.
    if _is_number(mean):
        outcomes[metric] = float(mean), float(error) if _is_number(error) else math.nan


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and value == value

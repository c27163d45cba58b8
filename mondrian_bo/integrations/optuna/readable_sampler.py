"""Samplers with a model that can be read: predictions in the units of the objectives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import optuna
from optuna.samplers import BaseSampler

from mondrian_bo.integrations.optuna.study.fixed_values import unwrapped
from mondrian_bo.integrations.optuna.study.study_checks import check_study
from mondrian_bo.integrations.optuna.study_model import StudyModel
from mondrian_bo.shared.argument_checks import check_number
from mondrian_bo.shared.array_types import FloatArray

if TYPE_CHECKING:
    from mondrian_bo.optimizer.fidelities.fidelity import FidelityChoice


class StudyPrediction(NamedTuple):
    """Predictions at m points, float64 arrays of shape (m,), or (m, K) with K > 1 objectives.

    Attributes
    ----------
    mean, std : array
        Mean and standard deviation of the objective's expected value. Both count long tails, as far
        as the range of the values, extended by its width on both sides.
    lower, upper : array
        Ends of the central interval that holds the expected value with the probability `coverage`
        of :meth:`ReadableSampler.predict`.
    """

    mean: FloatArray
    std: FloatArray
    lower: FloatArray
    upper: FloatArray


class ReadableSampler(BaseSampler):
    """A sampler with a model of the study that can be read."""

    @property
    def fidelity(self) -> FidelityChoice | None:
        """Name of the parameter that is the fidelity, or name and target; None if there is none."""
        return None

    @abstractmethod
    def read_model(self, study: optuna.Study) -> StudyModel:
        """Return the model of a study, which has learnt all finished trials.

        It is apart from the one that suggestions come from: reading it does not change them.

        Raises
        ------
        ValueError
            If the study has no finished trial with a finite value and a parameter that varies.
        """

    def predict(
        self,
        study: optuna.Study,
        params: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        coverage: float = 0.9,
    ) -> StudyPrediction:
        """Predict the objectives of a study, whichever samplers suggested its trials.

        Parameters
        ----------
        study : optuna.Study
            The study. Its finished trials are read, new ones only after the first call.
        params : mapping, or sequence of m mappings
            Values of the parameters by name, as in ``trial.params``. Those of inactive branches
            are ignored, and so are parameters with a single possible value in each trial. Numbers
            may be outside of the present range or between its steps, as a study's range may change.
            The model extrapolates there, up to the limit of :class:`StudyPrediction`: a narrow
            interval at the limit only says that the objective may lie beyond it.
        coverage : float, default=0.9
            Probability of the intervals, in (0, 1).

        Returns
        -------
        StudyPrediction
            Mean, standard deviation, and the ends of central intervals. They refer to the
            expected value of the objective: a single noisy trial varies more.

        Raises
        ------
        ValueError
            If `coverage` is not in (0, 1), the study has no finished trial with a finite value and
            a parameter that varies, a name or choice is unknown, a value is no finite number or no
            integer of an integer parameter, or an active parameter is missing.
        TypeError
            If `study` is no study, `params` is neither a mapping nor a sequence of mappings, or
            `coverage` is no number.
        """
        check_study(study)
        check_number("coverage", coverage)
        if not 0.0 < coverage < 1.0:
            raise ValueError(f"`coverage` must be in (0, 1), got {coverage!r}.")
        is_one = isinstance(params, Mapping) or not isinstance(params, Iterable)
        many: list[Any] = [params] if is_one else list(params)
        if not all(isinstance(one, Mapping) for one in many):
            raise TypeError(
                f"`params` must be a mapping or a sequence of mappings, got {params!r}."
            )
        model = self.read_model(study)
        rows = model.rows(many)
        optimizer, n_objectives = model.optimizer, len(study.directions)
        mean, std = (one[:, :n_objectives] for one in optimizer.predict_rows(rows))
        tail = 0.5 * (1.0 - coverage)
        quantiles = optimizer.predict_quantiles(rows, np.array([tail, 1.0 - tail]))
        found = (mean, std, quantiles[:, :, 0], quantiles[:, :, 1])
        return StudyPrediction(*(one[:, 0] if n_objectives == 1 else one for one in found))


def check_reader(sampler: object) -> None:
    """Check an argument `sampler`, whose model is asked.

    Raises
    ------
    TypeError
        If it is another sampler, and not None.
    """
    if sampler is not None and not isinstance(sampler, ReadableSampler):
        raise TypeError(f"`sampler` must be a MondrianSampler or None, got {sampler!r}.")


def fidelity_of(study: optuna.Study) -> FidelityChoice | None:
    """Return the fidelity of the study's sampler; None if it has none."""
    sampler, _ = unwrapped(study)
    return sampler.fidelity if isinstance(sampler, ReadableSampler) else None


def fidelity_name_of(study: optuna.Study) -> str | None:
    """Return the name of the fidelity of the study's sampler; None if it has none."""
    fidelity = fidelity_of(study)
    return next(iter(fidelity)) if isinstance(fidelity, Mapping) else fidelity


def model_of(study: optuna.Study, fallback: ReadableSampler) -> StudyModel:
    """Return the model of the study's own sampler, or of `fallback` if that has none.

    The own sampler may be inside of a `PartialFixedSampler`.

    Raises
    ------
    ValueError
        As :meth:`ReadableSampler.read_model`.
    """
    own, _ = unwrapped(study)
    return (own if isinstance(own, ReadableSampler) else fallback).read_model(study)

"""The model of a study, for readers: predictions in the units of the objectives."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial

from mondrian_bo.integrations.optuna.study.distributions import values_under
from mondrian_bo.integrations.optuna.study.fixed_values import unwrapped
from mondrian_bo.integrations.optuna.study.study_checks import check_study
from mondrian_bo.integrations.optuna.study.study_reader import StudyReader
from mondrian_bo.search_space.lenient_encoding import encode_leniently
from mondrian_bo.shared.argument_checks import check_number
from mondrian_bo.shared.array_types import FloatArray

if TYPE_CHECKING:
    from mondrian_bo.optimizer.row_optimizer import RowOptimizer

_FARTHEST = 1e9
"""Largest distance from the range, in units of it, that the model sees: squares of larger ones may
overflow."""


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


class StudyModel(NamedTuple):
    """The model of a study.

    Attributes
    ----------
    reader : StudyReader
        What was read of the study.
    optimizer : RowOptimizer
        The optimizer that has been told all finished trials.
    """

    reader: StudyReader
    optimizer: RowOptimizer

    def rows(self, params: Sequence[Mapping[str, Any]]) -> FloatArray:
        """Encode parameters by name, shape (m, d).

        Raises
        ------
        ValueError
            If a name or a choice is unknown, a value is no finite number or no integer of an
            integer parameter, or if a parameter that is active is missing.
        """
        space, internal = self.optimizer.space, []
        # Parameters with a single value in each trial are not in the space, and are checked too.
        known = {**self.reader.singles, **self.reader.distributions}
        for one in params:
            unknown = [name for name in one if name not in known]
            # Trials without a value have parameters that nothing is known of.
            if unknown and (unknown := sorted({*unknown} - self.reader.names())):
                raise ValueError(f"The finished trials have no parameters {unknown}.")
            internal.append(
                {n: _internal(n, known[n], value) for n, value in one.items() if n in known}
            )
        rows = np.clip(encode_leniently(space, internal), -_FARTHEST, _FARTHEST)
        rows[np.isnan(space.snap(np.nan_to_num(rows)))] = np.nan
        for k in np.flatnonzero(~self.optimizer.accepts(rows))[:1]:
            lacking = [name for name in space.names if name not in params[k]]
            raise ValueError(
                f"{dict(params[k])!r} lacks an active parameter: one or more of {lacking}."
            )
        return rows

    def accepted(self, trials: Sequence[FrozenTrial]) -> tuple[list[FrozenTrial], FloatArray]:
        """Encode trials under the latest distributions.

        Parameters
        ----------
        trials : sequence of FrozenTrial
            The trials.

        Returns
        -------
        trials : list of m FrozenTrial
            Those whose active parameters all have a place in the model's space. Others have, for
            example, a choice that has been removed.
        rows : float64 array of shape (m, d)
            Their rows.
        """
        known = self.reader.distributions
        rows = encode_leniently(
            self.optimizer.space, [values_under(known, trial.params) for trial in trials]
        )
        accepted = np.flatnonzero(self.optimizer.accepts(rows))
        rows = np.clip(rows[accepted], -_FARTHEST, _FARTHEST)
        return [trials[i] for i in accepted.tolist()], rows


def _internal(name: str, distribution: BaseDistribution, value: object) -> float:
    """Return Optuna's internal representation of a value: finite, and whole if it is to be."""
    try:
        found = distribution.to_internal_repr(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"`params` has no possible value of {name!r}: {error}") from None
    if not math.isfinite(found):
        raise ValueError(f"`params` has no possible value of {name!r}: got {value!r}.")
    if isinstance(distribution, IntDistribution) and not found.is_integer():
        raise ValueError(f"`params` must have an integer for {name!r}, got {value!r}.")
    return found


class ReadableSampler(BaseSampler):
    """A sampler with a model of the study that can be read."""

    @property
    def fidelity_name(self) -> str | None:
        """Name of the parameter that is the fidelity; None if the sampler has none."""
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


def fidelity_of(study: optuna.Study) -> str | None:
    """Return the name of the fidelity of the study's sampler; None if it has none."""
    sampler, _ = unwrapped(study)
    return sampler.fidelity_name if isinstance(sampler, ReadableSampler) else None


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

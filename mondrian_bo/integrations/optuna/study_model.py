"""The model of a study: it encodes parameters and trials for the optimizer that learnt them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.trial import FrozenTrial

from mondrian_bo.integrations.optuna.study.distributions import values_under
from mondrian_bo.integrations.optuna.study.study_reader import StudyReader
from mondrian_bo.search_space.lenient_encoding import encode_leniently
from mondrian_bo.shared.array_types import FloatArray

if TYPE_CHECKING:
    from mondrian_bo.optimizer.row_optimizer import RowOptimizer

_FARTHEST = 1e9
"""Largest distance from the range, in units of it, that the model sees: squares of larger ones may
overflow."""


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

"""An optimizer that stores what it was asked and told, and can be written to a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from mondrian_bo.optimizer.models.known_noise import KnownNoise
from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.optimizer.optimizer_state import OptimizerState
from mondrian_bo.optimizer.row_optimizer import Params, RowOptimizer
from mondrian_bo.optimizer.saving.journal import Batch, Journal
from mondrian_bo.optimizer.saving.saved_file import read_file, refuse, write_file
from mondrian_bo.optimizer.saving.saved_settings import (
    decode_acquisition,
    decode_params,
    decode_space,
    encode_acquisition,
    encode_params,
    encode_seed,
    encode_space,
)
from mondrian_bo.optimizer.search.portfolio import AcquisitionChoice
from mondrian_bo.optimizer.shared.transactions import transaction
from mondrian_bo.optimizer.shared.trials import KEY_DIGITS, decoding_rounds
from mondrian_bo.optimizer.shared.validation import check_names
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.argument_checks import check_callable
from mondrian_bo.shared.array_types import AnyArray, FloatArray

if TYPE_CHECKING:
    from mondrian_bo.optimizer.earlier_studies.earlier_trials import EarlierTrials

_PLAIN_SETTINGS = (
    "directions",
    "surrogate",
    "n_startup_trials",
    "n_estimators",
    "n_candidates",
    "seed",
    "allow_missing",
    "constraints",
)
"""Arguments of the constructor that JSON holds as they are."""


class _Stored(NamedTuple):
    """What identifies a former state of :class:`StoredOptimizer`, besides its trials.

    Attributes
    ----------
    pending : float64 array of shape (k, d)
        Pending trials.
    n_batches : int
        Length of the journal.
    """

    pending: FloatArray
    n_batches: int


class StoredOptimizer(RowOptimizer):
    """A :class:`RowOptimizer` that stores its pending trials and the batches that it was told.

    Parameters
    ----------
    space : SearchSpace
        The space.
    acquisition : str, Acquisition or Portfolio, default="auto"
        As in :class:`MondrianOptimizer`.
    constraints : sequence of str, default=()
        Names of the constraints.
    **settings : object
        Other parameters of :class:`RowOptimizer`.

    Attributes
    ----------
    constraints : tuple of str
        As given.
    """

    def __init__(
        self,
        space: SearchSpace,
        *,
        acquisition: AcquisitionChoice = "auto",
        constraints: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        super().__init__(space, acquisition=acquisition, **settings)
        self.constraints = check_names(constraints)
        self._acquisition = acquisition
        self._n_asked = 0
        self._pending = np.empty((0, space.n_dimensions))
        # Pending parameters by the bytes of their row. Decoding a row may change the last digit.
        self._as_asked: dict[bytes, Params] = {}
        self._journal = self._new_journal()

    def _state(self) -> OptimizerState:
        return super()._state()._replace(stored=_Stored(self._pending, len(self._journal)))

    def _store_trials(
        self,
        rows: FloatArray,
        values: FloatArray,
        constraints: FloatArray,
        nan_is_failure: bool,
        observed: FloatArray | None = None,
    ) -> None:
        super()._store_trials(rows, values, constraints, nan_is_failure, observed)
        self._journal.append(Batch(rows, values, constraints, nan_is_failure, observed))

    def save(self, path: str | Path) -> None:
        """Write the whole state to a file, as arrays and JSON.

        docs/saved-files.md describes the file. It replaces a former one when it is complete.

        Parameters
        ----------
        path : str or Path
            Where to write; a usual ending is ``.npz``.

        Raises
        ------
        TypeError
            If an acquisition is not one of the library, or a choice of a categorical parameter or
            an option of an arm is not a str, an int, a float, a bool or None, or there is a
            fidelity or a tracked metric.
        OSError
            If the file cannot be written.
        """
        settings, state, arrays = self._content()
        write_file(path, {"settings": settings, "state": state}, arrays)

    @transaction
    def _content(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, FloatArray]]:
        """Return settings and state, which JSON can hold, and arrays, which nothing changes."""
        if len(self.metrics):
            raise TypeError("A saved file has no room for tracked metrics. Use pickle.")
        if self._fidelity is not None:
            raise TypeError("A saved file has no room for a fidelity and its costs. Use pickle.")
        steps, constraints = self._steps(), self._constraints
        state = {
            "n_asked": self._n_asked,
            "n_correlated": 0 if constraints is None else constraints.n_correlated,
            "n_steps": [len(part) for part in steps],
            "n_denoised": 0,
        }
        if len(self._pending):
            state["pending"] = [encode_params(params) for params in self._pending_params()]
        arrays = {
            **{name: array.copy() for name, array in self._journal.arrays().items()},
            "reference_point": self._reference,
            "pending": self._pending,
            "excluded": self._search.trials.excluded,
            "steps": np.array([n for part in steps for n in part], dtype=float),
            **_earlier_arrays(self._earlier),
        }
        if self._noise is not None:
            remaining, units, state["n_denoised"] = self._noise.state()
            arrays.update(remaining_noise=remaining, noise_units=units)
        return self._settings(), state, arrays

    def _settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor as JSON holds them."""
        factory = self._factory.settings
        settings = {
            "space": encode_space(self.space),
            "directions": list(self.directions),
            "surrogate": self._surrogate,
            "acquisition": encode_acquisition(self._acquisition),
            "n_startup_trials": factory.n_startup_trials,
            "n_estimators": factory.n_estimators,
            "n_candidates": factory.n_candidates,
            "seed": encode_seed(self._entropy),
            "allow_missing": bool(self._allow_missing),
            "constraints": list(self.constraints),
            "has_is_valid": self._valid is not None,
        }
        if self._earlier:
            settings["warm_start"] = [[one.name, len(one.values)] for one in self._earlier]
        return settings

    @classmethod
    def load(cls, path: str | Path, is_valid: Callable[[Params], bool] | None = None) -> Self:
        """Read an optimizer that `save` wrote. It goes on as the saved one would have done.

        Nothing in the file is executed. The trials are told again, O(1) each, and models learn them
        in the same steps when they are first used, which takes as long as it took before. So the
        next suggestions are the same, if the file is from the same version of the library.

        Parameters
        ----------
        path : str or Path
            The file.
        is_valid : callable or None, default=None
            The function that the saved optimizer had, if it had one.

        Returns
        -------
        MondrianOptimizer
            The optimizer.

        Raises
        ------
        TypeError
            If `is_valid` is neither a function nor None.
        ValueError
            If the file is truncated, altered, of another kind (such as a pickle), or of a later
            version of the format, or if `is_valid` is missing; the message names the file and the
            reason.
        OSError
            If it cannot be read.
        """
        check_callable("is_valid", is_valid)
        header, arrays = read_file(path)
        settings = header.get("settings")
        if is_valid is None and isinstance(settings, dict) and settings.get("has_is_valid"):
            refuse(path, "its optimizer has a function `is_valid`, which `load` must be given")
        try:
            settings = dict(header["settings"])
            optimizer = cls(
                decode_space(settings["space"]),
                acquisition=decode_acquisition(settings["acquisition"]),
                reference_point=arrays["reference_point"].tolist(),
                is_valid=is_valid,
                warm_start=_earlier_of(settings, arrays),
                **{name: settings[name] for name in _PLAIN_SETTINGS},
            )
            optimizer._resume(header["state"], arrays)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            refuse(path, f"its content is contradictory ({type(error).__name__}: {error})")
        return optimizer

    @transaction
    def _resume(self, state: Mapping[str, Any], arrays: Mapping[str, FloatArray]) -> None:
        """Return to the state of `_content`; this optimizer is new."""
        journal = self._new_journal()
        journal.load(arrays)
        for name in ("rows", "pending", "excluded", "earlier_rows"):
            if name in arrays:
                self._check_rows(name, arrays[name])
        if not (
            self.accepts(arrays["rows"]).all() and self.space.is_complete(arrays["pending"]).all()
        ):
            raise ValueError("active parameters are missing")
        for batch in journal:
            self._store_trials(*batch)
        self._search.trials.exclude(arrays["excluded"])
        self._pending, self._n_asked = arrays["pending"], int(state["n_asked"])
        if self._n_asked < 0:
            raise ValueError(f"`n_asked` is {self._n_asked}")
        # Files of earlier versions have rows alone.
        if "pending" in state:
            self._as_asked = self._decode_pending(state["pending"])
        self._set_steps(np.split(arrays["steps"].astype(int), np.cumsum(state["n_steps"][:-1])))
        if self._constraints is not None:
            self._constraints.n_correlated = int(state["n_correlated"])
        if "remaining_noise" in arrays:
            models = self._outcome_models
            self._noise = KnownNoise(self._store_outcomes, self._moments, models=models)
            remaining = arrays["remaining_noise"]
            # Files of earlier versions have no units.
            units = arrays.get("noise_units", np.ones(len(remaining)))
            self._noise.restore((remaining, units, int(state["n_denoised"])))

    def _undo(self, before: OptimizerState | None) -> None:
        if before is not None:
            self._pending = before.stored.pending
            self._journal.shorten(before.stored.n_batches)
        super()._undo(before)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; pickles of earlier versions lack what is added here."""
        added = {"_as_asked": {}, "_decoding_rounds": decoding_rounds(state["space"])}
        super().__setstate__({**added, **state})

    def _known_params(self) -> dict[bytes, Params]:
        """Return the entries of `_as_asked` whose trials are still pending."""
        keys = {row.tobytes() for row in self._pending}
        return {key: params for key, params in self._as_asked.items() if key in keys}

    def _pending_params(self) -> list[Params]:
        """Return copies of the parameters of pending trials, as they were asked for."""
        known = self._known_params()
        return [
            known[key].copy() if (key := row.tobytes()) in known else self.space.from_unit(row)
            for row in self._pending
        ]

    def _decode_pending(self, encoded: Sequence[Mapping[str, Any]]) -> dict[bytes, Params]:
        """Return `_as_asked` of a file; raise a ValueError if it is not that of the rows."""
        many = [decode_params(one) for one in encoded]
        rows = np.array([self.space.to_unit(one) for one in many]).reshape(self._pending.shape)
        if not np.allclose(rows, self._pending, rtol=0.0, atol=10.0**-KEY_DIGITS, equal_nan=True):
            raise ValueError("pending trials are not those of their rows")
        return {row.tobytes(): one for row, one in zip(self._pending, many, strict=True)}

    def _new_journal(self) -> Journal:
        return Journal(self.space.n_dimensions, len(self.directions))

    def _models(self) -> list[OutcomeModel]:
        """Return all models but those of rugged values, in the same order for the same trials."""
        constraints = [] if self._constraints is None else self._constraints.models
        return [*self._search.models, *constraints]

    def _steps(self) -> list[list[int]]:
        """Return, for each model, the numbers of trials at which it has learnt."""
        rugged = (
            []
            if self._constraints is not None
            else [one.rugged_steps for one in self._search.searches]
        )
        return [*(model.learnt_at for model in self._models()), *rugged]

    def _set_steps(self, parts: Sequence[AnyArray]) -> None:
        """Let models learn at given numbers of trials; `parts` is what `_steps` returned."""
        models, searches = self._models(), self._search.searches
        found = [sorted({step for step in part.tolist() if step > 0}) for part in parts]
        # Another version may have other models, or none of rugged values; they learn all at once.
        if len(found) not in (len(models), len(models) + len(searches)):
            return
        for model, steps in zip(models, found, strict=False):
            model.learnt_at = [step for step in steps if step <= len(model.trials)]
        for search, steps in zip(searches, found[len(models) :], strict=False):
            search.rugged_steps = [step for step in steps if step <= len(search.trials)]

    def _check_rows(self, name: str, rows: FloatArray) -> None:
        """Refuse rows that are no encoded points, shape (m, d); NaN is an absent value."""
        if rows.ndim != 2 or rows.shape[1] != self.space.n_dimensions:
            raise ValueError(f"`{name}` has shape {rows.shape}.")
        choices = rows[:, self.space.is_categorical]
        n_choices = self.space.n_choices[self.space.is_categorical]
        is_choice = (choices >= 0.0) & (choices < n_choices) & (choices % 1.0 == 0.0)
        if np.isinf(rows).any() or not (is_choice | np.isnan(choices)).all():
            raise ValueError(f"`{name}` holds what the space does not.")


def _earlier_arrays(earlier: Sequence[EarlierTrials]) -> dict[str, FloatArray]:
    """Return earlier studies as arrays of a file; the settings have their names and sizes."""
    if not earlier:
        return {}
    arrays = {
        "earlier_rows": np.vstack([one.rows for one in earlier]),
        "earlier_values": np.concatenate([one.values for one in earlier]),
    }
    if any(one.is_feasible is not None for one in earlier):
        feasible = [
            np.ones(len(one.values)) if one.is_feasible is None else one.is_feasible
            for one in earlier
        ]
        arrays["earlier_feasible"] = np.concatenate(feasible).astype(np.float64)
    return arrays


def _earlier_of(
    settings: Mapping[str, Any], arrays: Mapping[str, FloatArray]
) -> list[EarlierTrials]:
    """Return the earlier studies of a file."""
    if "warm_start" not in settings:
        return []
    # Loaded here: few searches have earlier studies.
    from mondrian_bo.optimizer.earlier_studies.earlier_trials import EarlierTrials

    names, sizes = zip(*settings["warm_start"], strict=True)
    ends = np.cumsum(sizes)[:-1]
    rows, values = arrays["earlier_rows"], arrays["earlier_values"]
    parts = zip(names, np.split(rows, ends), np.split(values, ends), strict=True)
    studies = [EarlierTrials(*part) for part in parts]
    if "earlier_feasible" not in arrays:
        return studies
    feasible = np.split(arrays["earlier_feasible"] > 0.0, ends)
    return [one._replace(is_feasible=part) for one, part in zip(studies, feasible, strict=True)]

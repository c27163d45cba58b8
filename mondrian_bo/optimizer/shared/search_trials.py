"""What a search needs of its trials, with one objective or several."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from mondrian_bo.shared.array_types import BoolArray, FloatArray


class SearchTrials(Protocol):
    """Trials as rows of the unit cube with values, larger is better.

    :class:`mondrian_bo.optimizer.shared.trials.Trials` has one value for each trial, and
    :class:`mondrian_bo.optimizer.pareto.pareto_trials.ParetoTrials` several.
    """

    @property
    def n_objectives(self) -> int:
        """Number K of values of a trial."""
        ...

    @property
    def rows(self) -> FloatArray:
        """The points, shape (n, d); NaN at inactive parameters."""
        ...

    @property
    def values(self) -> FloatArray:
        """Their values, shape (n,), or (n, K) with several objectives; may be infinite, not NaN."""
        ...

    @property
    def excluded(self) -> FloatArray:
        """The rows that `exclude` was called with, rounded, without duplicates, shape (k, d)."""
        ...

    def __len__(self) -> int:
        """Return the number n of trials."""
        ...

    def tell(
        self,
        rows: FloatArray,
        values: FloatArray,
        eligible: bool = True,
        observed: FloatArray | None = None,
    ) -> None:
        """Add trials of shape (m, d) with their values and, with known errors, what was observed.

        The latter has the shape (m, 2), or (m, K, 2) with several objectives, see :class:`Trials`.

        Eligible trials may be the incumbent, and rank before all others: they have not failed,
        satisfy the constraints and, with a fidelity, are at its target.
        """
        ...

    def best_rows(self, eligible: bool = False) -> FloatArray:
        """Return rows of the best trials, shape (k, d); only of eligible ones if so asked."""
        ...

    def front(self) -> BoolArray:
        """Return which trials are eligible and not dominated, shape (n,).

        With one objective, this is the best one.
        """
        ...

    def is_taken(self, row: FloatArray, running: Collection[bytes] = ()) -> bool:
        """Whether a trial has been told, or ruled out by `avoid` or `exclude`, or is running."""
        ...

    def avoid(self, rows: FloatArray) -> None:
        """Count rows of shape (m, d) as known without a value, as for trials that failed."""
        ...

    def exclude(self, rows: FloatArray) -> None:
        """Count all points as known that have the values of one of these rows."""
        ...

    def state(self) -> Any:
        """Return what `restore` needs; O(1)."""
        ...

    def restore(self, state: Any) -> None:
        """Remove what was added after a state; O(what is removed)."""
        ...

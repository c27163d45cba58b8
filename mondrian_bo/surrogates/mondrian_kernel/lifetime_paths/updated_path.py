"""A path by updates: cells split or merge, one after the other.

See Balog2016, 4.2.1; Balog2016thesis, 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from mondrian_bo.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cuts import (
    Cut,
    CutSequence,
    merge,
    split,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.solvers import (
    DualSolver,
    PathSolver,
    PrimalSolver,
    RidgeFit,
)

UpdatedForm = Literal["cholesky", "inverse", "dual"]


class UpdatedPath:
    """The state of a path: cells, and the solver that follows them.

    Parameters
    ----------
    cuts : CutSequence
        The cuts.
    targets : float64 array of shape (n,)
        What is predicted at the training points.
    ridge : float
        The regularisation delta^2.
    form : {"cholesky", "inverse", "dual"}
        What is updated, see :func:`kernel_path`.

    Attributes
    ----------
    labels : int64 array of shape (n_all, M)
        The current cells of all points.
    n_cells : int
        Number of current cells with training points.
    """

    def __init__(
        self, cuts: CutSequence, targets: FloatArray, ridge: float, form: UpdatedForm
    ) -> None:
        self._cuts = cuts
        self._targets = targets
        self._ridge = ridge
        self._form = form
        self.labels: IntArray = cuts.first_labels()
        self.n_cells = self.labels.shape[1]
        self._fit: RidgeFit | None = None

    def walk(self, start: int, stop: int) -> Iterator[int]:
        """Add cut after cut, or remove them; yield the number of cuts from `start` to `stop`."""
        cuts = self._cuts
        for i in range(start):
            self._apply(split, cuts[i], 1)
        self._solver: PathSolver = self._new_solver()
        yield start
        for i in range(start, stop):
            if self._apply(split, cuts[i], 1):
                self._solver.split(cuts[i])
            yield i + 1
        for i in range(start - 1, stop - 1, -1):
            if self._apply(merge, cuts[i], -1):
                self._solver.merge(cuts[i])
            yield i

    def _apply(self, change: Callable[[IntArray, Cut], None], cut: Cut, growth: int) -> bool:
        """Change the labels; return whether the solver is to follow."""
        change(self.labels, cut)
        if cut.splits_training:
            self.n_cells += growth
            self._fit = None
        return cut.splits_training

    def fit(self) -> RidgeFit:
        """Return the solution at the current cells."""
        if self._fit is None:
            self._fit = self._solver.fit()
        return self._fit

    def _new_solver(self) -> PathSolver:
        labels = self.labels[: len(self._targets)]
        arguments = labels, self._cuts.n_labels, self._targets, self._ridge
        if self._form == "dual":
            return DualSolver(*arguments)
        return PrimalSolver(*arguments, self._form)

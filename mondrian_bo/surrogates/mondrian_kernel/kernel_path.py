"""The lifetime path of the Mondrian kernel, at the cost of about one fit (000, 4.2.1; 001, 4.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.surrogates.mondrian_kernel.cuts import CutSequence, merge, split
from mondrian_bo.surrogates.mondrian_kernel.lifetime_path import (
    LifetimePath,
    PathRecorder,
    evaluated_positions,
    root_mean_square,
)
from mondrian_bo.surrogates.mondrian_kernel.path_data import PathData
from mondrian_bo.surrogates.mondrian_kernel.path_solvers import (
    DualSolver,
    Form,
    PathSolver,
    PrimalSolver,
    RidgeFit,
    predict,
)

FloatArray = NDArray[np.float64]
LabelArray = NDArray[np.int64]
Direction = Literal["forward", "backward"]
Method = Literal["auto", "cholesky", "inverse", "dual"]


def kernel_path(
    data: PathData,
    noise_variance: float,
    prior_variance: float,
    *,
    direction: Direction = "forward",
    method: Method = "auto",
    n_evaluations: int | None = None,
    keep_weights: bool = False,
) -> LifetimePath:
    """Return the path of the Mondrian kernel: Bayesian ridge regression on indicators of cells.

    Parameters
    ----------
    data : PathData
        The data.
    noise_variance : float
        Variance of the noise; the ridge delta^2 is its ratio to the prior variance.
    prior_variance : float
        Variance of the weights under the prior.
    direction : {"forward", "backward"}, default="forward"
        Whether to add cuts, from lifetime 0 on, or to remove them, from the last one back.
    method : {"auto", "cholesky", "inverse", "dual"}, default="auto"
        What is updated: the Cholesky factor or the inverse of the equations of all C cells, or the
        inverse of those of all n points. "auto" takes the factor while there are no more cells than
        points, and the dual equations else.
    n_evaluations : int or None, default=None
        At how many lifetimes, equally spread among the cuts, to note errors; None is all.
    keep_weights : bool, default=False
        Whether to keep what :meth:`LifetimePath.weights` needs, n numbers for each lifetime.

    Returns
    -------
    LifetimePath
        At lifetime 0 and wherever a prediction may change.

    Notes
    -----
    Each of the k cuts costs O(min(C, n)^2), and each evaluation O((n + n_validation) M) more.
    """
    ridge = noise_variance / prior_variance
    walk = _Walk(data, ridge, method)
    evaluated = evaluated_positions(len(walk.cuts) + 1, n_evaluations)
    recorder = PathRecorder(data, np.append(0.0, walk.cuts.times))
    steps = walk.forward() if direction == "forward" else walk.backward()
    n_training = len(data.targets)
    for position in steps:
        if position in evaluated:
            fit = walk.fit()
            recorder.record(
                position,
                walk.n_cells,
                root_mean_square(fit.fitted - data.targets),
                root_mean_square(predict(fit.weights, walk.labels[n_training:]) - data.validation),
                fit.log_marginal_likelihood(prior_variance),
                (data.targets - fit.fitted) / ridge if keep_weights else None,
            )
    return recorder.path()


class _Walk:
    """The state of a path: cells, and the solver that follows them."""

    def __init__(self, data: PathData, ridge: float, method: Method) -> None:
        self._targets = data.targets
        self._ridge = ridge
        self._method = method
        self.cuts = CutSequence(data.partitions, len(data.targets))
        self.labels: LabelArray = self.cuts.first_labels()
        self.n_cells = data.partitions.n_trees
        self._solver: PathSolver | None = None
        self._is_dual = False
        self._fit: RidgeFit | None = None

    def forward(self) -> Iterator[int]:
        """Add cut after cut; yield the number of cuts so far."""
        yield 0
        for i in range(len(self.cuts)):
            cut = self.cuts[i]
            if cut.splits_training:
                solver = self._current_solver(grows=True)
                split(self.labels, cut)
                solver.split(cut)
                self.n_cells += 1
                self._fit = None
            else:
                split(self.labels, cut)
            yield i + 1

    def backward(self) -> Iterator[int]:
        """Remove cut after cut; yield the number of cuts that are left."""
        self.labels = self.cuts.last_labels()
        self.n_cells += sum(self.cuts[i].splits_training for i in range(len(self.cuts)))
        yield len(self.cuts)
        for i in range(len(self.cuts) - 1, -1, -1):
            cut = self.cuts[i]
            if cut.splits_training:
                solver = self._current_solver(grows=False)
                merge(self.labels, cut)
                solver.merge(cut)
                self.n_cells -= 1
                self._fit = None
            else:
                merge(self.labels, cut)
            yield i

    def fit(self) -> RidgeFit:
        """Return the solution at the current cells."""
        if self._fit is None:
            self._fit = self._current_solver().fit()
        return self._fit

    def _current_solver(self, grows: bool = False) -> PathSolver:
        """Return a solver of the right form for the number of cells there are, or are to be."""
        is_dual = self._method == "dual"
        if self._method == "auto":
            is_dual = self.n_cells + grows > len(self._targets)
        if self._solver is None or is_dual != self._is_dual:
            labels = self.labels[: len(self._targets)]
            arguments = labels, self.cuts.n_labels, self._targets, self._ridge
            if is_dual:
                self._solver = DualSolver(*arguments)
            else:
                form: Form = "inverse" if self._method == "inverse" else "cholesky"
                self._solver = PrimalSolver(*arguments, form)
            self._is_dual = is_dual
        return self._solver

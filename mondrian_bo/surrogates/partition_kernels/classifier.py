"""Support vector machines with a random partition kernel (Davies2014, sections 2.2 and 3.3)."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from mondrian_bo.shared.array_types import BoolArray, FloatArray
from mondrian_bo.surrogates.estimators.one_versus_rest import (
    OneVersusRestMixin,
    one_versus_rest,
    several_classes,
)
from mondrian_bo.surrogates.partition_kernels.base import PartitionSolver, Solver
from mondrian_bo.surrogates.partition_kernels.linear_system import ShiftedSystem

_ROUNDING = 1e-14
"""Relative error of an objective: near the minimum, rounding decides which of two is smaller."""

_SHORTEST = 1e-10
"""Shortest share of a Newton step that the line search tries; what is shorter changes nothing."""


class PartitionSVC(OneVersusRestMixin, ClassifierMixin, PartitionSolver):
    """Support vector classification, matrix-free, with a random partition kernel.

    Newton's method minimises ``1/2 |w|^2 + C sum(max(0, 1 - y f(x))^2)`` with an intercept that is
    not penalised. Each step is a linear system over the points within the margin, which conjugate
    gradients solve at O(m N) an iteration. Several classes are learnt one against the rest.

    Parameters
    ----------
    kernel : PartitionKernel or None, default=None
        An unfitted kernel, of which a copy is fitted to X and y; None is
        :class:`FastClusterKernel`. A fitted one in a :class:`sklearn.frozen.FrozenEstimator` is
        used as it is.
    C : float, default=1.0
        Weight of the losses.
    solver : {"auto", "cg", "dense"}, default="auto"
        "cg" is matrix-free, "dense" forms and factorises matrices, and "auto" is "dense" up to 2000
        samples.
    preconditioned, tol, max_iter
        See :class:`PartitionGaussianProcessRegressor`.
    max_newton : int, default=50
        Newton steps at most. A :class:`~sklearn.exceptions.ConvergenceWarning` says when they do
        not suffice.
    random_state : int, RandomState instance or None, default=None
        Seed of the default kernel. A given kernel has its own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    kernel_ : PartitionKernel
        The fitted kernel.
    dual_coef_ : ndarray of shape (n_samples, 1 or n_classes)
        Weights of the training points; 0 outside of the margin.
    intercept_ : ndarray of shape (1 or n_classes,)
        Intercepts.
    n_iter_ : int
        Newton steps, the largest number over the classes.
    n_cg_iterations_ : int
        Iterations of conjugate gradients in all.

    Notes
    -----
    The squared hinge is what Newton's method needs. For the hinge itself, a fitted kernel is the
    ``kernel`` of :class:`sklearn.svm.SVC`, whose Gram matrix is dense, and
    ``make_pipeline(kernel, LinearSVC(loss="hinge"))`` is matrix-free with a penalised intercept.

    References
    ----------
    O. Chapelle: Training a Support Vector Machine in the Primal, Neural Computation 19, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import PartitionSVC
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> bool(PartitionSVC(random_state=0).fit(X, y).score(X, y) > 0.9)
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **PartitionSolver._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "max_newton": [Interval(Integral, 1, None, closed="left")],
    }

    dual_coef_: FloatArray

    def __init__(
        self,
        kernel: BaseEstimator | None = None,
        *,
        C: float = 1.0,
        solver: Solver = "auto",
        preconditioned: bool = True,
        tol: float = 1e-10,
        max_iter: int = 1000,
        max_newton: int = 50,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.solver = solver
        self.preconditioned = preconditioned
        self.tol = tol
        self.max_iter = max_iter
        self.max_newton = max_newton
        self.random_state = random_state

    def _fit(self, X: ArrayLike, y: ArrayLike) -> None:
        """Fit the kernel and the machines."""
        data, targets = validate_data(self, X, y, dtype=np.float64)
        self.classes_, numbers = several_classes(targets)
        self._gram = self._fit_kernel(data, targets)
        machines = [self._machine(signs) for signs in one_versus_rest(numbers, len(self.classes_))]
        self.dual_coef_ = np.stack([machine.weights for machine in machines], axis=1)
        self.intercept_ = np.array([machine.intercept for machine in machines])
        self.n_iter_ = max(machine.n_steps for machine in machines)
        self.n_cg_iterations_ = sum(machine.n_cg_iterations for machine in machines)

    def _values(self, X: ArrayLike) -> FloatArray:
        """Return the decision values of all machines, shape (n_samples, n_machines)."""
        check_is_fitted(self, "dual_coef_")
        cross = self._gram.cross(self._clusters(X))
        return np.asarray(cross.matmat(self.dual_coef_) + self.intercept_)

    def _machine(self, signs: FloatArray) -> _Machine:
        dense = self._is_dense(len(signs))
        n_steps = n_cg_iterations = 0
        state = _State(np.zeros(len(signs)), 0.0, np.zeros(len(signs)))
        for _ in range(self.max_newton):
            n_steps += 1
            active = signs * state.decision < 1.0
            system = self._system(self._gram.restricted(active), 0.5 / self.C, dense)
            target = self._newton_target(system, signs, active, state)
            n_cg_iterations += sum(system.n_iterations)
            state, length = self._line_search(state, target, signs)
            unchanged = np.array_equal(signs * state.decision < 1.0, active)
            if length == 0.0 or (length == 1.0 and unchanged):
                break
        else:
            warnings.warn(
                f"Newton's method has not converged within max_newton={self.max_newton} steps",
                ConvergenceWarning,
                stacklevel=4,
            )
        return _Machine(state.weights, state.intercept, n_steps, n_cg_iterations)

    def _newton_target(
        self, system: ShiftedSystem, signs: FloatArray, active: BoolArray, state: _State
    ) -> _State:
        """Return the minimiser of the losses of the points that are within the margin now."""
        weights = np.zeros(len(signs))
        intercept = state.intercept
        if active.any():
            solved = system.solve(np.stack([signs[active], np.ones(active.sum())], axis=1))
            intercept = float(solved[:, 0].sum() / solved[:, 1].sum())
            weights[active] = solved[:, 0] - intercept * solved[:, 1]
        return _State(weights, intercept, self._gram.matvec(weights) + intercept)

    def _line_search(
        self, state: _State, target: _State, signs: FloatArray
    ) -> tuple[_State, float]:
        """Go towards the target as far as the objective falls; return the state and the share."""
        before = self._objective(state, signs)
        tolerance = _ROUNDING * abs(before)
        length = 1.0
        while length > _SHORTEST:
            reached = state.towards(target, length)
            if self._objective(reached, signs) <= before + tolerance:
                return reached, length
            length *= 0.5
        return state, 0.0

    def _objective(self, state: _State, signs: FloatArray) -> float:
        shortfall = np.maximum(1.0 - signs * state.decision, 0.0)
        penalty = 0.5 * state.weights @ (state.decision - state.intercept)
        return float(penalty + self.C * np.sum(shortfall**2))


class _State(NamedTuple):
    """Weights of the training points, intercept, and decision values of the training points."""

    weights: FloatArray
    intercept: float
    decision: FloatArray

    def towards(self, target: _State, share: float) -> _State:
        """Return the state at a share of the way to another."""
        return _State(
            (1.0 - share) * self.weights + share * target.weights,
            (1.0 - share) * self.intercept + share * target.intercept,
            (1.0 - share) * self.decision + share * target.decision,
        )


class _Machine(NamedTuple):
    """What one binary machine has learnt, and the iterations it took."""

    weights: FloatArray
    intercept: float
    n_steps: int
    n_cg_iterations: int

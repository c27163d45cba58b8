"""What the optimizer asks of a model."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from mondrian_bo.shared.array_types import BoolArray, FloatArray, IntArray

WIDE_SPACE = 64
"""Number of parameters at which a space is wide, our choice. From it on, the optimizer of an Optuna
study is built again less often. Beyond it, a first fit has fewer iterations, warps are not compared
and, where parameters may be inactive, fewer candidates are scored."""


class Surrogate(Protocol):
    """A model of standardised outcomes over rows of the unit cube.

    Rows have shape (m, d): numeric columns in [0, 1] (or beyond, where a range has narrowed),
    categorical ones hold the index of a choice, and NaN marks an inactive parameter. See
    ``docs/design.md``, "Conventions".
    """

    def learn(self, rows: FloatArray, targets: FloatArray) -> None:
        """Learn more rows with their targets, after those already learnt."""
        ...

    def set_targets(self, targets: FloatArray) -> None:
        """Replace the targets of all rows learnt so far."""
        ...

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of C equally weighted components, both (C, m)."""
        ...

    def draw(self, rng: np.random.Generator) -> RandomFunction:
        """Draw a function from the posterior, for Thompson sampling."""
        ...

    def extended(self, rows: FloatArray, targets: FloatArray) -> AbstractContextManager[None]:
        """Learn further rows for the duration of a ``with`` block."""
        ...


class Columns(NamedTuple):
    """What the columns of rows hold.

    Attributes
    ----------
    n_choices : int array of shape (d,)
        Number of choices of categorical columns, 0 for numeric ones.
    may_be_absent : bool
        Whether rows may hold NaN, for inactive parameters.
    unexplained : bool array of shape (d,) or None, default=None
        Which columns may hold NaN although no condition makes their parameters inactive; None is
        none of them.
    """

    n_choices: IntArray
    may_be_absent: bool
    unexplained: BoolArray | None = None


class SurrogateFactory(Protocol):
    """What makes an empty surrogate, with options of its own: usually its class."""

    def __call__(self, columns: Columns, seed: np.random.SeedSequence, **options: Any) -> Surrogate:
        """Return a surrogate.

        Parameters
        ----------
        columns : Columns
            What the columns of rows hold.
        seed : numpy.random.SeedSequence
            Source of all randomness.
        options
            The surrogate's own keyword arguments.
        """
        ...


class Gradients(NamedTuple):
    """Predictions of C components at m rows, and how they change with the numeric columns.

    Attributes
    ----------
    means, stds : float64 arrays of shape (C, m)
        Predictions.
    mean_gradients, std_gradients : float64 arrays of shape (C, m, d)
        Derivatives; 0 for categorical columns.
    """

    means: FloatArray
    stds: FloatArray
    mean_gradients: FloatArray
    std_gradients: FloatArray


@runtime_checkable
class SmoothSurrogate(Protocol):
    """A surrogate whose predictions have derivatives."""

    @property
    def n_components(self) -> int:
        """Number C of components of its predictions, each of which costs time."""
        ...

    def gradients(self, rows: FloatArray) -> Gradients:
        """Return predictions with their derivatives."""
        ...


class RandomFunction(Protocol):
    """A function drawn from a posterior; every call evaluates the same function."""

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return the values at rows, shape (m,)."""
        ...


@runtime_checkable
class JointSurrogate(Protocol):
    """A surrogate that draws many functions at given rows at once."""

    def draw_at(self, rows: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Return the values of functions drawn from the posterior, shape (n_draws, m)."""
        ...


@runtime_checkable
class CovariantSurrogate(Protocol):
    """A surrogate that knows the covariances of its function at given rows."""

    def joint(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means, shape (m,), and covariances, (m, m), of the function at rows."""
        ...


@runtime_checkable
class ScaledSurrogate(Protocol):
    """A surrogate with lengthscales."""

    def fix_lengthscales(self, like: Any, factor: float) -> None:
        """Take the hyper-parameters of another surrogate, and its lengthscales times a factor.

        This one is empty. No fit changes them.

        Parameters
        ----------
        like : ScaledSurrogate
            The other surrogate, of the same type.
        factor : float
            The factor, positive.
        """
        ...


@runtime_checkable
class ComparingSurrogate(Protocol):
    """A surrogate that tells how well targets on any scale could be predicted."""

    def left_out(self, rows: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict each target from all others, by a model that is fitted to these targets alone.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Rows, whatever has been learnt.
        targets : float64 array of shape (m,)
            Their targets, of mean 0 and variance 1.

        Returns
        -------
        means, stds : float64 arrays of shape (m,)
            The predicted means and standard deviations.
        """
        ...


@runtime_checkable
class WeighingSurrogate(Protocol):
    """A surrogate whose targets may have noise of known variances, which differ between them.

    Attributes
    ----------
    weighs_targets : bool
        True; what distinguishes these surrogates.
    """

    weighs_targets: bool

    def learn(
        self, rows: FloatArray, targets: FloatArray, known_noise: FloatArray | None = None
    ) -> None:
        """Learn more rows with their targets, after those already learnt.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            The rows.
        targets : float64 array of shape (m,)
            Their targets.
        known_noise : float64 array of shape (m,) or None, default=None
            Known variances of their noise, beside a common noise that is estimated. A surrogate has
            them for all its targets or, with None, for none of them.
        """
        ...

    def set_targets(self, targets: FloatArray, known_noise: FloatArray | None = None) -> None:
        """Replace the targets of all rows learnt so far and, if it is given, their known noise."""
        ...


@runtime_checkable
class NoisySurrogate(Protocol):
    """A surrogate that knows the noise of targets."""

    def predict_targets(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of new targets, noise included, both (C, m)."""
        ...

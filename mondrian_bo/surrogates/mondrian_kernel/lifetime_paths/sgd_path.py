"""Lifetime paths for losses without a closed form, by warm-started gradient descent.

See Balog2016, section 4.2.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_X_y

from mondrian_bo.shared.argument_checks import check_count, check_number
from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.estimators.one_versus_rest import (
    decided_classes,
    one_versus_rest,
    several_classes,
)
from mondrian_bo.surrogates.estimators.online_classifier import labels_among
from mondrian_bo.surrogates.mondrian_kernel.descent_step import LOSSES, Loss, take_step
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cuts import EMPTY, CutSequence
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path import (
    LifetimePath,
    PathRecorder,
    check_evaluations,
    evaluated_positions,
    root_mean_square,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import sample_path_data
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.solvers import predict

_CLASSIFIES = ("hinge", "log_loss")
"""Losses of classifiers, whose targets are -1 and 1."""


def sgd_lifetime_path(
    X: ArrayLike,
    y: ArrayLike,
    X_val: ArrayLike | None = None,
    y_val: ArrayLike | None = None,
    *,
    loss: Loss,
    alpha: float = 1e-4,
    epsilon: float = 0.1,
    learning_rate: float = 0.1,
    n_estimators: int = 50,
    max_lifetime: float = 10.0,
    first_steps: int | None = None,
    steps_per_cut: int | None = None,
    n_evaluations: int | None = 200,
    feature_weights: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> LifetimePath:
    """Return errors at all lifetimes up to a largest one, for a linear model on Mondrian features.

    The model minimises ``mean(loss) + alpha / 2 * ||w||^2``, the objective (3) of Balog2016 up to a
    factor. It is a support vector machine (hinge), logistic regression (log_loss) or support vector
    regression (epsilon_insensitive). When a cell splits, both parts start with its weight, which
    leaves predictions unchanged, and stochastic gradient descent continues. All lifetimes cost
    about as much as one. Several classes are learnt one against the rest.
    :class:`MondrianKernelClassifier` and :class:`MondrianKernelSVR` fit a single lifetime.

    Parameters
    ----------
    X, y : array-likes of shapes (n_samples, n_features) and (n_samples,)
        Training data; classes for "hinge" and "log_loss", two at least, numbers otherwise.
    X_val, y_val : array-likes or None, default=None
        Validation data.
    loss : {"hinge", "log_loss", "squared_error", "epsilon_insensitive"}
        The loss of a sample; "squared_error" is half the square.
    alpha : float, default=1e-4
        Strength of the regularisation.
    epsilon : float, default=0.1
        Errors up to this size have no loss under "epsilon_insensitive".
    learning_rate : float, default=0.1
        Length of the first step, eta; step t has the length ``eta / (1 + eta alpha t)``.
    n_estimators : int, default=50
        Number of partitions, M.
    max_lifetime : float, default=10.0
        Lifetime of the partitions.
    first_steps : int or None, default=None
        Number of steps at lifetime 0; None is five for each sample.
    steps_per_cut : int or None, default=None
        Number of steps after each cut; None gives all cuts together 20 steps for each sample, with
        at least one step after each cut.
    n_evaluations : int or None, default=200
        Number of lifetimes, equally spread among the cuts, at which to compute errors; None is all.
    feature_weights, random_state, n_jobs
        See :class:`MondrianFeatures`.

    Returns
    -------
    LifetimePath
        Errors are shares of wrong classes, or root mean squared errors. There is no evidence.

    Raises
    ------
    TypeError
        If an argument is not a number, or not an integer, where one is needed.
    ValueError
        If an argument is not as described, or if `y_val` has a class that `y` has not.

    Notes
    -----
    A step costs O(M) for each class, and a cut as much as there are points in its cell.
    """
    _check_settings(loss, alpha, epsilon, learning_rate, first_steps, steps_per_cut)
    check_count("n_estimators", n_estimators, 1)
    check_number("max_lifetime", max_lifetime)
    if not 0.0 <= max_lifetime < np.inf:
        raise ValueError(f"max_lifetime must be finite and not negative, got {max_lifetime}")
    check_evaluations(n_evaluations)
    rng = check_random_state(random_state)
    classifies = loss in _CLASSIFIES
    n_classes = 0
    if classifies:
        classes, y = several_classes(check_X_y(X, y, dtype=np.float64)[1])
        n_classes = len(classes)
        if y_val is not None:
            labels = np.asarray(y_val)
            y_val, known = labels_among(labels, classes, "y_val")
            if not known.all():
                unknown = labels[~known].tolist()[0]
                raise ValueError(f"y_val has {unknown!r}, which is not among the classes of y")
    data = sample_path_data(
        X,
        y,
        X_val,
        y_val,
        n_estimators=n_estimators,
        max_lifetime=max_lifetime,
        normalize_y=not classifies,
        feature_weights=feature_weights,
        random_state=rng,
        n_jobs=n_jobs,
    )
    cuts = CutSequence(data.partitions, len(data.targets))
    n_training = len(data.targets)
    if first_steps is None:
        first_steps = 5 * n_training
    if steps_per_cut is None:
        steps_per_cut = max(1, 20 * n_training // max(len(cuts), 1))
    steps_rng = np.random.default_rng(rng.randint(2**31, size=4))
    settings = DescentSettings(LOSSES[loss], float(alpha), float(epsilon), float(learning_rate))
    targets = one_versus_rest(data.targets, n_classes) if classifies else data.targets[None]
    descent = _Descent(targets, cuts, settings, steps_rng)
    positions = evaluated_positions(len(cuts) + 1, n_evaluations)
    recorder = PathRecorder(data, np.append(0.0, cuts.times))
    error = _share_of_wrong if classifies else _regression_error
    descent.start(first_steps)
    done = 0
    for position in positions.tolist():
        descent.advance(position - done, steps_per_cut)
        done = position
        predictions = descent.predictions()
        recorder.record(
            position,
            descent.n_cells,
            error(predictions[:n_training], data.targets),
            error(predictions[n_training:], data.validation),
        )
    return recorder.path()


class DescentSettings(NamedTuple):
    """Settings of stochastic gradient descent.

    Attributes
    ----------
    loss : int
        Number of the loss.
    alpha : float
        Strength of the regularisation.
    epsilon : float
        Errors up to this size have no loss under "epsilon_insensitive".
    first_step : float
        Length of the first step.
    """

    loss: int
    alpha: float
    epsilon: float
    first_step: float


class DescentState(NamedTuple):
    """Linear models under stochastic gradient descent; the weights of model k are scale * v.

    Attributes
    ----------
    vectors : float64 array of shape (n_models, n_numbers)
        v, for each cell by its number.
    states : float64 array of shape (n_models, 2)
        Scale of the weights, and number of steps so far.
    cells : int64 array of shape (n_all, M)
        The current cells of all points, training points first.
    targets : float64 array of shape (n_models, n)
        Targets of the training points.
    """

    vectors: FloatArray
    states: FloatArray
    cells: IntArray
    targets: FloatArray


class _Descent:
    """Weights of cells under stochastic gradient descent, for one model or one for each class.

    Parameters
    ----------
    targets : float64 array of shape (n_models, n)
        Targets of the training points.
    cuts : CutSequence
        The cuts to come.
    settings : DescentSettings
        Loss, regularisation and steps.
    rng : numpy.random.Generator
        Chooses the point of each step.
    """

    def __init__(
        self,
        targets: FloatArray,
        cuts: CutSequence,
        settings: DescentSettings,
        rng: np.random.Generator,
    ) -> None:
        self._cuts = cuts.arrays
        self._done = 0
        self._settings = settings
        self._rng = rng
        self._state = DescentState(
            np.zeros((len(targets), cuts.n_numbers)),
            np.tile([1.0, 0.0], (len(targets), 1)),
            cuts.first_cells(),
            targets,
        )
        self.n_cells = self.cells.shape[1]

    @property
    def cells(self) -> IntArray:
        """The current cells of all points, shape (n_all, M)."""
        return self._state.cells

    def start(self, n_steps: int) -> None:
        """Take steps before the first cut."""
        points = self._rng.integers(self._state.targets.shape[1], size=n_steps)
        _descend(self._state, points, self._settings)

    def advance(self, n_cuts: int, n_steps: int) -> None:
        """Make the next cuts, and take steps at random training points after each."""
        points = self._rng.integers(self._state.targets.shape[1], size=n_cuts * n_steps)
        end = self._done + n_cuts
        self.n_cells += _advance(
            self._state, self._cuts, self._done, end, points, n_steps, self._settings
        )
        self._done = end

    def weights(self) -> FloatArray:
        """Return the weights of all cells, shape (n_models, n_numbers)."""
        return np.asarray(self._state.states[:, :1] * self._state.vectors)

    def predictions(self) -> FloatArray:
        """Return predictions at all points, shape (n_all, n_models)."""
        values = [predict(vector, self.cells) for vector in self._state.vectors]
        return np.asarray(self._state.states[:, 0] * np.stack(values, axis=1))


def _share_of_wrong(predictions: FloatArray, targets: FloatArray) -> float:
    """Return the share of wrong classes, or NaN without targets."""
    return float(np.mean(decided_classes(predictions) != targets)) if len(targets) else np.nan


def _regression_error(predictions: FloatArray, targets: FloatArray) -> float:
    """Return the root mean squared error, or NaN without targets."""
    return root_mean_square(predictions[:, 0] - targets)


def _check_settings(
    loss: str,
    alpha: float,
    epsilon: float,
    learning_rate: float,
    first_steps: int | None,
    steps_per_cut: int | None,
) -> None:
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {list(LOSSES)}, got {loss!r}")
    check_number("epsilon", epsilon)
    for name, size in (("alpha", alpha), ("learning_rate", learning_rate)):
        check_number(name, size)
        if not 0.0 < size < np.inf:
            raise ValueError(f"{name} must be positive and finite, got {size}")
    if not epsilon >= 0.0:
        raise ValueError(f"epsilon must not be negative, got {epsilon}")
    for name, value in (("first_steps", first_steps), ("steps_per_cut", steps_per_cut)):
        if value is not None:
            check_count(name, value, 0)


@njit(cache=True, nogil=True)
def _descend_one(vector, state, cells, targets, points, settings):  # type: ignore[no-untyped-def]
    """Take a step at each point, with one model."""
    scale, step = state[0], state[1]
    for point in points:
        rate = settings.first_step / (1.0 + settings.first_step * settings.alpha * step)
        step += 1.0
        decay = rate * settings.alpha
        scale = take_step(vector, scale, cells, point, targets[point], settings, rate, decay)
    state[0], state[1] = scale, step


@njit(cache=True, nogil=True)
def _descend(state, points, settings):  # type: ignore[no-untyped-def]
    """Take a step at each point, with each model."""
    for k in range(len(state.vectors)):
        _descend_one(
            state.vectors[k], state.states[k], state.cells, state.targets[k], points, settings
        )


@njit(cache=True, nogil=True)
def _advance(state, cuts, start, end, points, n_steps, settings):  # type: ignore[no-untyped-def]
    """Make cuts, with steps after each; return the number of new cells.

    Both parts of a cell start with its weight (Balog2016, section 4.2.2).
    """
    cells, vectors = state.cells, state.vectors
    n_new = 0
    for c in range(start, end):
        tree, parent = cuts.tree[c], cuts.cells[c, 0]
        one, other = cuts.cells[c, 1], cuts.cells[c, 2]
        for k in range(cuts.start[c], cuts.end[c]):
            cells[cuts.order[tree, k], tree] = one if k < cuts.middle[c] else other
        if one != EMPTY and other != EMPTY:
            for vector in vectors:
                weight = vector[parent]
                vector[parent] = 0.0
                vector[one] = weight
                vector[other] = weight
            n_new += 1
        here = points[(c - start) * n_steps : (c - start + 1) * n_steps]
        _descend(state, here, settings)
    return n_new

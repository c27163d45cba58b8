"""The Gaussian process forest as a surrogate of the optimizer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.linalg import lapack

from mondrian_bo.shared.argument_checks import check_count, check_flag, check_number
from mondrian_bo.shared.array_types import BoolArray, FloatArray
from mondrian_bo.surrogates.base import WIDE_SPACE, Columns, Gradients, RandomFunction
from mondrian_bo.surrogates.gaussian_process.covariance import factorise
from mondrian_bo.surrogates.gaussian_process.fit import OPTIMIZER_PRIOR, Prior
from mondrian_bo.surrogates.gaussian_process.input_warping import InputWarping
from mondrian_bo.surrogates.gaussian_process.left_out import left_out_moments
from mondrian_bo.surrogates.gaussian_process_forest.forest import GaussianProcessForest
from mondrian_bo.surrogates.gaussian_process_forest.leaf_prediction import take_roots
from mondrian_bo.surrogates.shared.encoding import TreeEncoding
from mondrian_bo.surrogates.shared.ensemble import Ensemble

_ABSENT_CHOICE = -1.0
"""Category of absent categorical parameters for the processes: an additional choice."""

_INACTIVE_NUMBER = 0.5
"""Value of inactive numeric parameters for the processes: the middle of the unit range. The trials
that have a value differ in the parameter of the condition, too."""

_UNKNOWN_NUMBER = -1.0
"""The same for numeric parameters that are absent without a condition, such as one that the
objective asks for since a later trial. Outside of the range, a trial that lacks the number is no
evidence of any value, our choice: one range away from the nearest one."""

_ROUNDING = 1e-9
"""Largest difference of an absent number's entry after a warp and its inverse."""

_FIRST_ITERATIONS = 100
"""Largest number of iterations of the first fit, our choice: it starts far from the maximum."""

_FIRST_WORK = 6400
"""Iterations of the first fit times dimensions, our choice: with more than 64 dimensions there are
fewer, at least `_FEWEST_ITERATIONS`."""

_FIRST_WORK_OF_BRANCHES = 1280
"""The same with more than 64 dimensions that rows may lack, our choice: the optimizer of a wide
conditional space is often built again, and most of its parameters have few trials."""

_FEWEST_ITERATIONS = 10
"""Least number of iterations of a first fit, our choice."""


class GaussianProcessForestSurrogate:
    """A :class:`GaussianProcessForest` over rows of a search space; implements ``Surrogate``.

    Parameters
    ----------
    columns, seed
        See :class:`mondrian_bo.surrogates.base.SurrogateFactory`.
    n_estimators : int, default=2
        Number of trees, of which the first is used alone while all trials fit into one leaf.
    block_size : int, default=200
        Largest number of trials in a leaf.
    prior : Prior, default=OPTIMIZER_PRIOR
        Prior of the hyper-parameters, for values of mean 0 and variance 1.
    scale_strength, restart_growth : float, default=1.0 and inf
        See :class:`GaussianProcessForest`.
    input_warping : bool, default=True
        Whether the processes see numeric columns on a logarithmic scale where the values ask for it
        (:class:`InputWarping`), in spaces of at most 64 columns.

    Raises
    ------
    TypeError, ValueError
        If an option is not as described.
    """

    weighs_targets = True

    def __init__(
        self,
        columns: Columns,
        seed: np.random.SeedSequence,
        *,
        n_estimators: int = 2,
        block_size: int = 200,
        prior: Prior = OPTIMIZER_PRIOR,
        scale_strength: float = 1.0,
        restart_growth: float = math.inf,
        input_warping: bool = True,
    ) -> None:
        _check_options(block_size, prior, scale_strength, restart_growth, input_warping)
        forest_seed, encoding_seed = seed.spawn(2)
        self._n_choices = n_choices = columns.n_choices
        self._is_categorical = n_choices > 0
        self._prior = prior
        chooses_warps = input_warping and len(n_choices) <= WIDE_SPACE
        self._absent_entries = absent_entries(columns)
        self._warping = InputWarping(~self._is_categorical, chooses_warps)
        self._encoding = TreeEncoding.if_needed(columns, n_estimators, encoding_seed)
        self._forest = GaussianProcessForest(
            Ensemble(n_estimators, len(n_choices), forest_seed),
            self._is_categorical,
            block_size=block_size,
            prior=prior,
            scale_strength=scale_strength,
            first_iterations=_first_iterations(columns),
            restart_growth=restart_growth,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; pickles of earlier versions lack what is added here."""
        added = {"_absent_entries": absent_entries(Columns(state["_n_choices"], True))}
        self.__dict__.update({**added, **state})

    @property
    def forest(self) -> GaussianProcessForest:
        """The forest, over rows as the trees and the processes see them."""
        return self._forest

    @property
    def encoding(self) -> TreeEncoding | None:
        """How the trees see rows; None if all columns are numeric and always active."""
        return self._encoding

    @property
    def absent_entries(self) -> FloatArray:
        """What the processes see in the place of NaN in each column, shape (d,)."""
        return self._absent_entries

    @property
    def warping(self) -> InputWarping:
        """How the processes see numeric columns."""
        return self._warping

    @property
    def n_components(self) -> int:
        """Number of components: 1 while all trials fit into one leaf, else the number of trees."""
        return self._forest.n_components

    def fix_lengthscales(self, like: GaussianProcessForestSurrogate, factor: float) -> None:
        """Take the hyper-parameters of another surrogate, and its lengthscales times a factor.

        This one is empty. No fit changes them.
        """
        like.forest.update()
        covariance = like.forest.covariance
        precisions = covariance.precisions / factor**2
        self._forest.fix_covariance(covariance._replace(precisions=precisions))
        self._warping.fix(like.warping)

    def learn(
        self, rows: FloatArray, targets: FloatArray, known_noise: FloatArray | None = None
    ) -> None:
        """Learn more rows; see :class:`mondrian_bo.surrogates.base.WeighingSurrogate`."""
        self._forest.learn(*self._inputs(rows, True), targets.copy(), known_noise)
        if self._warping.count(len(targets)):
            self._choose_warps()

    def set_targets(self, targets: FloatArray, known_noise: FloatArray | None = None) -> None:
        """Replace the targets of all rows."""
        self._forest.set_targets(targets, known_noise)

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of the trees, both of shape (C, m)."""
        prediction = self._forest.predict(*self._inputs(rows))
        return prediction.means, np.sqrt(prediction.variances)

    def predict_targets(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of new targets, noise included, both (C, m)."""
        prediction = self._forest.predict(*self._inputs(rows), with_noise=True)
        return prediction.means, np.sqrt(prediction.variances)

    def gradients(self, rows: FloatArray) -> Gradients:
        """Return predictions with their gradients."""
        moments = self._forest.predict(*self._inputs(rows), with_gradients=True)
        if self._warping.is_active:
            slopes = self._warping.slopes(rows)
            moments.mean_gradients[:] *= slopes
            moments.variance_gradients[:] *= slopes
        take_roots(moments.variances, moments.variance_gradients)
        return Gradients(*moments)

    def draw(self, rng: np.random.Generator) -> RandomFunction:
        """Draw a function from the posterior of a random tree."""
        # Loaded here: few searches draw functions.
        from mondrian_bo.surrogates.gaussian_process_forest.posterior_draw import draw_from_forest

        function = draw_from_forest(self._forest, self._n_choices, rng)
        return lambda rows: function(*self._inputs(rows))

    def draw_at(self, rows: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw functions jointly and return their values at rows, shape (n_draws, m)."""
        # Loaded here: suggestions draw no functions jointly.
        from mondrian_bo.surrogates.gaussian_process_forest.joint_draws import joint_draws

        return joint_draws(self._forest, *self._inputs(rows), n_draws, rng)

    def joint(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means, shape (m,), and covariances, (m, m), of the function at rows."""
        # Loaded here: suggestions need no covariances.
        from mondrian_bo.surrogates.gaussian_process_forest.joint_draws import joint_moments

        return joint_moments(self._forest, *self._inputs(rows))

    def decorrelate(self, columns: FloatArray) -> FloatArray | None:
        """Multiply columns of one entry per trial by the inverse factor of the targets' covariance.

        Parameters
        ----------
        columns : float64 array of shape (n, k)
            One row for each trial that is learnt.

        Returns
        -------
        float64 array of shape (n, k) or None
            ``L^-1 columns``, where ``L L'`` is the covariance of the targets, with the present
            hyper-parameters; None if the trials need more than one leaf, or if n is not their
            number. Takes O(n^3) time.
        """
        forest = self._forest
        if not forest.has_single_leaf or len(columns) != forest.n_points:
            return None
        rows, _, known_noise = forest.samples
        factor = factorise(forest.covariance.of_targets(rows, known_noise))
        return np.asarray(lapack.dtrtrs(factor, columns, lower=1)[0])

    def left_out(self, rows: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict each value from all others, by one process that is fitted to these alone."""
        return left_out_moments(self._inputs(rows)[1], targets, self._is_categorical, self._prior)

    @contextmanager
    def extended(self, rows: FloatArray, targets: FloatArray) -> Iterator[None]:
        """Learn further rows inside a ``with`` block."""
        with self._forest.extended(*self._inputs(rows, True), targets):
            yield

    def _inputs(self, rows: FloatArray, for_trees: bool = False) -> tuple[Any, FloatArray]:
        """Return rows as the trees see them, (1 or T, m, d), and as the processes do, without NaN.

        The former are None where a prediction needs no trees, so that it does not encode rows.
        """
        points, encode, warping = None, self._encoding, self._warping
        if for_trees or not self._forest.has_single_leaf:
            points = np.array(rows, order="C")[None] if encode is None else encode(rows)
        if encode is not None:  # otherwise all columns are numeric and always active
            missing = np.isnan(rows)
            if missing.any():
                rows = np.where(missing, self._absent_entries, rows)
        return points, warping(rows) if warping.is_active else rows

    def _choose_warps(self) -> None:
        """Choose the warps, and give the processes the rows with them."""
        rows, targets, known_noise = self._forest.samples
        keeps: BoolArray | None = None
        if (self._absent_entries == _UNKNOWN_NUMBER).any():
            # The entry of an absent number has no place on another scale.
            absent = np.abs(self._warping.inverse(rows) - _UNKNOWN_NUMBER) < _ROUNDING
            keeps = np.asarray(absent.any(axis=0))
        start = self._forest.covariance
        found = self._warping.choose(rows, targets, start, self._prior, keeps, known_noise)
        if found is not None:
            rows, covariance = found
            self._forest.rescale(rows, np.ones(rows.shape[1]), targets.copy(), covariance)


def _check_options(
    block_size: int,
    prior: Prior,
    scale_strength: float,
    restart_growth: float,
    input_warping: bool,
) -> None:
    check_count("block_size", block_size, 1)
    if not isinstance(prior, Prior):
        raise TypeError(f"`prior` must be a Prior, got {prior!r}.")
    check_number("scale_strength", scale_strength)
    if not scale_strength > 0.0:
        raise ValueError(f"`scale_strength` must be above 0, got {scale_strength!r}.")
    check_number("restart_growth", restart_growth)
    if not restart_growth > 1.0:
        raise ValueError(f"`restart_growth` must be above 1, got {restart_growth!r}.")
    check_flag("input_warping", input_warping)


def absent_entries(columns: Columns) -> FloatArray:
    """Return what processes see in the place of NaN in each column, shape (d,)."""
    entries = np.where(columns.n_choices > 0, _ABSENT_CHOICE, _INACTIVE_NUMBER)
    if columns.unexplained is not None:
        entries[columns.unexplained & (columns.n_choices == 0)] = _UNKNOWN_NUMBER
    return entries


def _first_iterations(columns: Columns) -> int:
    """Return the largest number of iterations of the first fit."""
    d = len(columns.n_choices)
    work = _FIRST_WORK_OF_BRANCHES if columns.may_be_absent and d > WIDE_SPACE else _FIRST_WORK
    return min(_FIRST_ITERATIONS, max(work // d, _FEWEST_ITERATIONS))

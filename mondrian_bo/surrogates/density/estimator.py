"""Density estimation with Mondrian forests (Balog2016thesis, chapter 2 and appendix C)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin, clone
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.density.lifetime_path import DensityLifetimePath
from mondrian_bo.surrogates.density.masses import WITHOUT
from mondrian_bo.surrogates.density.model import DensityModel
from mondrian_bo.surrogates.estimators.base import UnsupervisedEstimator
from mondrian_bo.surrogates.estimators.locks import reads
from mondrian_bo.surrogates.estimators.validation import (
    check_bounds,
    check_differences,
    check_samples,
    own_copy,
    seed_sequence,
)
from mondrian_bo.surrogates.shared.scales import varies
from mondrian_bo.trees.random import make_streams

_FIRST_LIFETIME, _LAST_LIFETIME = 16.0, 1024.0
"""First and longest lifetimes that ``lifetime="auto"`` searches up to, for the unit cube."""


class MondrianForestDensity(DensityMixin, UnsupervisedEstimator):
    """Density of a box, by Mondrian trees with Polya-tree masses on their cells.

    Each tree is a Mondrian partition of a box. A cell shares its probability mass between the two
    cells it splits into by a Beta variable whose prior mean is the share of the volume; given the
    data the masses are Beta-binomial (Balog2016thesis, appendix C). The density is the mean over
    trees of the expected densities, which are constant in each leaf.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees M.
    lifetime : float or "auto", default="auto"
        Lifetime of the Mondrian processes, for the box scaled to the unit cube. "auto" takes the
        lifetime with the largest leave-one-out likelihood.
    concentration : float, default=0.01
        The gamma of appendix C: the Beta parameters of a cell at depth d add up to
        ``gamma (d + 1)^2``. Large values keep the density uniform. Trees are deep, so that values
        far below 1 fit best (docs/density.md).
    bounds : array-like of shape (n_features, 2) or None, default=None
        Lower and upper end of each feature: the box. None is the range of the data, widened.
    margin : float, default=0.1
        How much the range is widened on each side, as a share of it.
    random_state : int, RandomState instance or None, default=None
        Seed of the trees.

    Attributes
    ----------
    lifetime_ : float
        The lifetime used.
    bounds_ : ndarray of shape (n_features, 2)
        The box; a feature that does not vary has width 1.
    model_ : DensityModel
        The trees and the densities of their cells.

    Notes
    -----
    A tree depends on the seed and the box alone, and a shorter lifetime prunes it. Cells without
    data are not split: they would share their expected mass in proportion to volumes, which does
    not change the density. So `fit` takes O(M n d depth), and the number of cells of the whole
    partition, which is exponential in the number of features, does not matter. The depth is that of
    the cells of samples, about ``d log(1 + lifetime)``. A tree has up to ``2 n depth`` nodes of
    62 bytes, and twice that while trees grow: 100 trees of 1797 samples with 64 features take
    5 GB. The choice of the lifetime splits cells of two samples or more only, which are few.

    Outside of the box the density is 0, and its logarithm -inf.

    References
    ----------
    M. Balog: The Mondrian Process in Machine Learning, 2015 (Balog2016thesis).

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import MondrianForestDensity
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> density = MondrianForestDensity(random_state=0).fit(X)
    >>> middle, edge = density.score_samples([[0.0], [2.5]])
    >>> bool(middle > edge)
    True
    >>> density.sample(3, random_state=0).shape
    (3, 1)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "lifetime": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "concentration": [Interval(Real, 0, None, closed="neither")],
        "bounds": ["array-like", None],
        "margin": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    model_: DensityModel

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        lifetime: float | Literal["auto"] = "auto",
        concentration: float = 0.01,
        bounds: ArrayLike | None = None,
        margin: float = 0.1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.concentration = concentration
        self.bounds = bounds
        self.margin = margin
        self.random_state = random_state

    def _fit(self, X: ArrayLike, y: ArrayLike | None) -> None:
        points, box = self._data_and_box(X)
        streams = self._streams()
        if self.lifetime == "auto":
            self.model_, _ = self._auto_model(streams, points, box)
        else:
            lifetime = float(self.lifetime)
            self.model_ = DensityModel(streams, points, box, lifetime, self.concentration)
        self.lifetime_ = self.model_.lifetime
        self.bounds_ = box.T.copy()

    @reads
    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Return the log density of inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
            Natural logarithms; minus infinity outside of the box.
        """
        # First, as it raises NotFittedError while there is no `model_`.
        points = self._checked(X)
        return self.model_.log_density(points)

    @reads
    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return the mean of :meth:`score_samples`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.
        y : object, default=None
            Not used.

        Returns
        -------
        float
            The mean log density; minus infinity if an input is outside of the box.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        return float(np.mean(self.score_samples(X)))

    @reads
    def leave_one_out(self) -> FloatArray:
        """Return the log density of each training point given the others, in the same box.

        The result is exact: trees do not depend on the points, and without a point the counts on
        its path are smaller by 1.

        Returns
        -------
        ndarray of shape (n_samples,)
            Natural logarithms.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        check_is_fitted(self, "model_")
        return self.model_.log_density(self.model_.points, WITHOUT)

    @reads
    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> FloatArray:
        """Draw from the density.

        Parameters
        ----------
        n_samples : int, default=1
            Number of points.
        random_state : int, RandomState instance or None, default=None
            Seed of the draw.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Points in the box.

        Raises
        ------
        TypeError, ValueError
            If `n_samples` is not an integer from 0 on.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        check_is_fitted(self, "model_")
        check_scalar(n_samples, "n_samples", Integral, min_val=0)
        return self.model_.draw(int(n_samples), check_random_state(random_state))

    @reads
    def lifetime_path(
        self, X: ArrayLike, y: object = None, X_val: ArrayLike | None = None
    ) -> DensityLifetimePath:
        """Return the likelihoods at every lifetime from 0 to `lifetime` (section 4.1, Figure 4.2).

        The estimator does not change. With ``lifetime="auto"`` the path reaches at least to 16 and
        twice as far as the best leave-one-out likelihood, or to 1024. Its trees are grown to its
        end, and so have more nodes than those of `fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : object, default=None
            Not used.
        X_val : array-like of shape (n_validation, n_features) or None, default=None
            Validation samples.

        Returns
        -------
        DensityLifetimePath
            Mean log densities, exact at every lifetime.

        Raises
        ------
        ValueError
            If a parameter, X or X_val is not as described.
        """
        self._validate_params()
        # Validation writes the features of X into a copy; this estimator may know others.
        other = clone(self)
        points, box = other._data_and_box(X)
        validation = None if X_val is None else check_samples(other, X_val)
        streams = self._streams()
        if self.lifetime == "auto":
            _, lifetime = self._auto_model(streams, points, box)
        else:
            lifetime = float(self.lifetime)
        return DensityModel(streams, points, box, lifetime, self.concentration).path(validation)

    def _auto_model(
        self, streams: NDArray[np.uint64], points: FloatArray, box: FloatArray
    ) -> tuple[DensityModel, float]:
        """Return the model of the best leave-one-out likelihood, and the lifetime searched."""
        searched = _FIRST_LIFETIME
        while True:
            settings = (streams, points, box)
            # Splits of a cell with one point change no leave-one-out density.
            small = DensityModel(*settings, searched, self.concentration, min_size=2)
            best = small.best_leave_one_out()
            is_last = searched >= _LAST_LIFETIME
            if best <= 0.5 * searched or is_last:
                model = DensityModel(*settings, np.nextafter(best, np.inf), self.concentration)
                # No cell is split between, so that the model is that of the middle.
                model.lifetime = 0.5 * (best + min(model.next_split, searched))
                if model.lifetime <= 0.5 * searched or is_last:
                    return model, searched
            searched *= 4.0

    def _data_and_box(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        points = own_copy(validate_data(self, X, dtype=np.float64))
        box = box_of(points, self.bounds, float(self.margin))
        if not np.all((points >= box[0]) & (points <= box[1])):
            raise ValueError("X has values outside of bounds")
        return points, box

    def _streams(self) -> NDArray[np.uint64]:
        return make_streams(seed_sequence(self.random_state), self.n_estimators)

    def _checked(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "model_")
        return check_samples(self, X)


def box_of(points: FloatArray, bounds: ArrayLike | None, margin: float) -> FloatArray:
    """Return the box of a density, shape (2, d): the bounds, or the range of points, widened.

    Parameters
    ----------
    points : float64 array of shape (n, d)
        Training points.
    bounds : array-like of shape (d, 2) or None
        Lower and upper end of each feature; None is the range of the points.
    margin : float
        How much the range is widened on each side, as a share of it.

    Raises
    ------
    ValueError
        If differences of points overflow, or the widths of the box, or if `bounds` are not finite
        of shape (d, 2) with lower < upper.
    """
    check_differences(points)
    ends = check_bounds(bounds, points.shape[1])
    with np.errstate(over="ignore"):
        box = _box_around(points, margin) if ends is None else np.stack(ends)
        good = np.isfinite(box[1] - box[0])
    if not good.all():
        feature = int(np.argmin(good))
        cause = "bounds" if ends is not None else f"the range of X, widened by margin={margin:g},"
        raise ValueError(
            f"{cause} must have a finite width in every feature; "
            f"got {box[:, feature].tolist()} for feature {feature}"
        )
    return box


def _box_around(points: FloatArray, margin: float) -> FloatArray:
    """Return the range of points, widened by the share `margin` on each side, shape (2, d)."""
    low, high = points.min(axis=0), points.max(axis=0)
    extent = high - low
    room = np.where(varies(extent), margin * extent, 0.5)
    # Beside large numbers, half a unit may be below the resolution of float64.
    room = np.maximum(room, np.where(varies(extent), 0.0, np.abs(low) * 1e-9))
    return np.stack([low - room, high + room])

"""Regression with Mondrian grids (Balog2016thesis, chapter 5)."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.estimators.locks import reads
from mondrian_bo.surrogates.estimators.validation import own_copy, seed_sequence
from mondrian_bo.surrogates.mondrian_grid.cells import GridCells
from mondrian_bo.surrogates.mondrian_grid.model import GridModel
from mondrian_bo.surrogates.mondrian_kernel.base import KernelRegression
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import (
    Validation,
    check_path_data,
    location_and_variance,
)
from mondrian_bo.surrogates.mondrian_kernel.model import CellPosterior
from mondrian_bo.surrogates.shared.lifetimes import check_lifetimes


class MondrianGridRegressor(KernelRegression):
    """Gaussian-process regression with the Mondrian grid: a lifetime for each dimension.

    A grid consists of independent one-dimensional Mondrian processes, one for each axis. M grids
    are sampled, and the features of an input indicate its M cells. In expectation the inner product
    of two rows is the general Laplace kernel ``exp(-sum_d lifetimes[d] * |x_d - x'_d|)``
    (Balog2016thesis, definition 5.1).

    Parameters
    ----------
    n_estimators : int, default=50
        Number of grids, M.
    lifetimes : float or array-like of shape (n_features,), default=1.0
        Inverse widths of the kernel, in inverse units of the inputs.
    noise_variance, prior_variance, normalize_y
        See :class:`MondrianKernelRegressor`.
    random_state : int, RandomState instance or None, default=None
        Seed of the grids.

    Attributes
    ----------
    model_ : CellPosterior
        The cells and the posterior.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import Greedy, MondrianGridRegressor, search_lifetimes
    >>> X = np.random.default_rng(0).random((120, 2))
    >>> y = np.sin(6 * X[:, 0])
    >>> grid = MondrianGridRegressor(10, random_state=0)
    >>> model = grid.grid_model(X[:80], y[:80], X[80:], y[80:])
    >>> search = search_lifetimes(model, Greedy(), 40)
    >>> lifetimes = search.best_lifetimes
    >>> bool(lifetimes[0] > lifetimes[1])
    True
    >>> fitted = grid.set_params(lifetimes=lifetimes).fit(X, y)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **KernelRegression._parameter_constraints,
        "lifetimes": [Interval(Real, 0, None, closed="left"), "array-like"],
    }

    def __init__(
        self,
        n_estimators: int = 50,
        lifetimes: float | ArrayLike = 1.0,
        *,
        noise_variance: float = 0.01,
        prior_variance: float = 1.0,
        normalize_y: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.lifetimes = lifetimes
        self.noise_variance = noise_variance
        self.prior_variance = prior_variance
        self.normalize_y = normalize_y
        self.random_state = random_state

    @reads
    def grid_model(
        self, X: ArrayLike, y: ArrayLike, X_val: Validation = None, y_val: Validation = None
    ) -> GridModel:
        """Return a model whose lifetimes can be changed; they are 0 at first.

        The estimator is not changed. As in Balog2016thesis, the grids are those of the training and
        validation inputs together.

        Parameters
        ----------
        X, y, X_val, y_val
            See :meth:`MondrianKernelRegressor.lifetime_path`.

        Returns
        -------
        GridModel
            The model, for :func:`search_lifetimes`.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described.
        """
        self._validate_params()
        points, targets, held_out = check_path_data(X, y, X_val, y_val)
        mean, unit = location_and_variance(targets, bool(self.normalize_y))
        return GridModel(
            self._cells(points, len(targets)),
            targets - mean,
            held_out - mean,
            unit * float(self.noise_variance),
            unit * float(self.prior_variance),
        )

    def _fit_weights(self, data: FloatArray, targets: FloatArray) -> None:
        lifetimes = self._lifetimes(data.shape[1])
        cells = self._cells(own_copy(data), len(targets))
        for d, lifetime in enumerate(lifetimes):
            for _ in cells.changes(d, float(lifetime)):
                pass
        _, unit = location_and_variance(targets, bool(self.normalize_y))
        self.model_ = CellPosterior(
            FixedGrids(cells, targets),
            self._ridge,
            unit * float(self.prior_variance),
            centred=bool(self.normalize_y),
        )

    def _cells(self, points: FloatArray, n_training: int) -> GridCells:
        rng = np.random.default_rng(seed_sequence(self.random_state))
        return GridCells(points, n_training, self.n_estimators, rng)

    def _lifetimes(self, n_features: int) -> FloatArray:
        lifetimes = np.asarray(self.lifetimes, dtype=np.float64)
        if lifetimes.shape not in ((), (n_features,)):
            raise ValueError(
                f"lifetimes must be one number or have shape ({n_features},), got {lifetimes.shape}"
            )
        return check_lifetimes(np.broadcast_to(lifetimes, (n_features,)), n_features)


class FixedGrids:
    """Grids at fixed lifetimes, as the partitions of a :class:`CellPosterior`.

    Parameters
    ----------
    cells : GridCells
        The grids, whose points are all training points.
    targets : float64 array of shape (n,)
        Targets of the points.
    """

    def __init__(self, cells: GridCells, targets: FloatArray) -> None:
        self._grids = cells
        self.targets = targets
        self._used = np.unique(cells.numbers)
        self.cells = np.searchsorted(self._used, cells.numbers).astype(np.int32)
        self.n_points, self.n_trees = self.cells.shape
        self.n_cells = len(self._used)

    def locate(self, points: FloatArray) -> tuple[NDArray[np.int32], FloatArray]:
        """Find the cells of points, shape (1, m, d); see :meth:`GridCells.locate`."""
        numbers, stays = self._grids.locate(points[0])
        place = np.minimum(np.searchsorted(self._used, numbers), self.n_cells - 1)
        return place.astype(np.int32), stays * (self._used[place] == numbers)

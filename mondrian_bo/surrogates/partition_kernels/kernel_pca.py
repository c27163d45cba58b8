"""Kernel PCA with a random partition kernel, by Lanczos iteration (Davies2014, section 5.3)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.estimators.base import UnsupervisedEstimator
from mondrian_bo.surrogates.estimators.locks import learns, reads
from mondrian_bo.surrogates.partition_kernels.base import PartitionKernelMixin
from mondrian_bo.surrogates.partition_kernels.operator import PartitionGram

_NEGLIGIBLE = 1e-10
"""Eigenvalues below this share of the largest are rounding errors: their components are 0."""


class PartitionKernelPCA(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, PartitionKernelMixin, UnsupervisedEstimator
):
    """Kernel principal component analysis with a random partition kernel.

    The components are the leading eigenvectors of the centred Gram matrix. The matrix is never
    formed: a Lanczos step takes O(m N) (Davies2014, equation 8). With a supervised kernel this is
    supervised dimensionality reduction (section 4.3.1).

    Parameters
    ----------
    n_components : int, default=2
        Number of components; N at most.
    kernel : PartitionKernel or None, default=None
        An unfitted kernel, of which a copy is fitted to X and y; None is
        :class:`FastClusterKernel`. A fitted one in a :class:`sklearn.frozen.FrozenEstimator` is
        used as it is.
    solver : {"lanczos", "dense"}, default="lanczos"
        "lanczos" is scipy's `eigsh`; "dense" decomposes the dense matrix, O(N^3), and is
        used too where half of the components or more are wanted.
    tol : float, default=0.0
        Relative accuracy of the eigenvalues by Lanczos; 0 is machine precision.
    random_state : int, RandomState instance or None, default=None
        Seed of the first Lanczos vector and of the default kernel. A given kernel has its own.

    Attributes
    ----------
    kernel_ : PartitionKernel
        The fitted kernel.
    eigenvalues_ : ndarray of shape (n_components,)
        Leading eigenvalues of the centred Gram matrix, the largest first.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Their vectors, of length 1; the entry of largest magnitude is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import PartitionKernelPCA
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> PartitionKernelPCA(2, random_state=0).fit_transform(X).shape
    (100, 2)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **PartitionKernelMixin._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"lanczos", "dense"})],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    eigenvalues_: FloatArray
    eigenvectors_: FloatArray

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: BaseEstimator | None = None,
        solver: Literal["lanczos", "dense"] = "lanczos",
        tol: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.solver = solver
        self.tol = tol
        self.random_state = random_state

    @reads
    def transform(self, X: ArrayLike) -> FloatArray:
        """Return the principal components of inputs, O(m (N + n)) for each component.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The components.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        check_is_fitted(self, "eigenvectors_")
        cross = self._gram.cross(self._clusters(X))
        significant = self.eigenvalues_ > _NEGLIGIBLE * self.eigenvalues_[0]
        scale = np.zeros_like(self.eigenvalues_)
        scale[significant] = self.eigenvalues_[significant] ** -0.5
        weights = self.eigenvectors_ * scale
        # The other terms of centring in feature space cancel, as each column of weights sums to 0.
        return np.asarray(cross.matmat(weights) - self._row_means @ weights)

    @learns
    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> FloatArray:
        """Fit, and return the principal components of the training inputs.

        Parameters
        ----------
        X, y
            As in `fit`.
        **params : object
            Passed on to `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The components.
        """
        return self.fit(X, y, **params).transform(X)

    @property
    def _n_features_out(self) -> int:
        return int(self.eigenvectors_.shape[1])

    def _fit(self, X: ArrayLike, y: ArrayLike | None) -> None:
        """Fit the kernel and find the components."""
        data = validate_data(self, X, dtype=np.float64)
        n = len(data)
        if self.n_components > n:
            raise ValueError(f"n_components={self.n_components} is more than n_samples={n}")
        self._gram = self._fit_kernel(data, y)
        if self.solver == "dense" or 2 * self.n_components >= n:
            values, vectors = _dense_components(self._gram, self.n_components)
        else:
            start = check_random_state(self.random_state).standard_normal(n)
            values, vectors = _lanczos_components(self._gram, self.n_components, start, self.tol)
        largest = np.argmax(np.abs(vectors), axis=0)
        signs = np.where(vectors[largest, np.arange(len(largest))] < 0.0, -1.0, 1.0)
        self.eigenvalues_, self.eigenvectors_ = np.maximum(values, 0.0), vectors * signs
        self._row_means = self._gram.matvec(np.full(n, 1.0 / n))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.kernel is not None:
            tags.target_tags.required = get_tags(self.kernel).target_tags.required
        return tags


def _lanczos_components(
    gram: PartitionGram, n_components: int, start: FloatArray, tol: float
) -> tuple[FloatArray, FloatArray]:
    def centred(x: FloatArray) -> FloatArray:
        vector = x.reshape(-1)
        product = gram.matvec(vector - vector.mean())
        return np.asarray(product - product.mean())

    if not centred(start).any():
        # All inputs are in the same cells: the centred kernel is 0, and ARPACK refuses that.
        return np.zeros(n_components), np.eye(len(start), n_components)
    operator = LinearOperator(gram.shape, matvec=centred, dtype=np.float64)
    values, vectors = eigsh(operator, k=n_components, which="LA", v0=start, tol=tol)
    order = np.argsort(values)[::-1]
    return values[order], vectors[:, order]


def _dense_components(gram: PartitionGram, n_components: int) -> tuple[FloatArray, FloatArray]:
    matrix = gram.toarray()
    matrix = matrix - matrix.mean(axis=0)
    matrix -= matrix.mean(axis=1, keepdims=True)
    n = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=[n - n_components, n - 1], overwrite_a=True)
    return values[::-1].copy(), vectors[:, ::-1].copy()

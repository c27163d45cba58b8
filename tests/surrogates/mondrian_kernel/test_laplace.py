"""The exact kernel, and its place in scikit-learn's Gaussian processes."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.metrics.pairwise import laplacian_kernel

from mondrian_bo.surrogates import LaplaceKernel

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 3)), RNG.normal(size=(4, 3))


def test_values():
    assert np.allclose(LaplaceKernel(0.7)(X, Y), laplacian_kernel(X, Y, gamma=0.7))
    weights = np.array([1.0, 0.2, 3.0])
    assert np.allclose(LaplaceKernel(weights)(X), laplacian_kernel(X * weights, gamma=1.0))
    assert np.array_equal(LaplaceKernel()(X).diagonal(), LaplaceKernel().diag(X))


def test_distances_that_overflow():
    kernel, gradient = LaplaceKernel()([[1e308], [-1e308]], eval_gradient=True)
    np.testing.assert_array_equal(kernel, np.eye(2))
    np.testing.assert_array_equal(gradient, np.zeros((2, 2, 1)))


@pytest.mark.parametrize("lifetime", [0.8, np.array([1.0, 0.2, 3.0])])
def test_gradient(lifetime):
    kernel = LaplaceKernel(lifetime)
    _, gradient = kernel(X, eval_gradient=True)
    assert gradient.shape == (6, 6, np.size(lifetime))
    for i in range(np.size(lifetime)):
        step = 1e-6 * np.eye(np.size(lifetime))[i]
        sides = [kernel.clone_with_theta(kernel.theta + s)(X) for s in (step, -step)]
        assert np.allclose(gradient[:, :, i], (sides[0] - sides[1]) / 2e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore:The optimal value found")
def test_learns_lifetimes_in_a_gaussian_process():
    inputs = np.random.default_rng(1).random((80, 2))
    kernel = ConstantKernel() * LaplaceKernel([1.0, 1.0]) + WhiteKernel(0.01)
    model = GaussianProcessRegressor(kernel, random_state=0)
    model.fit(inputs, np.sin(6.0 * inputs[:, 0]))
    learnt = model.kernel_.k1.k2.lifetime
    assert learnt[0] > 5.0 * learnt[1]


def test_fixed_lifetime_has_no_gradient():
    kernel = LaplaceKernel(1.0, "fixed")
    assert kernel(X, eval_gradient=True)[1].shape == (6, 6, 0)
    assert len(kernel.theta) == 0


def test_is_a_scikit_learn_kernel():
    kernel = LaplaceKernel(2.0, (0.1, 10.0))
    assert clone(kernel) == kernel
    assert kernel.is_stationary()
    assert repr(kernel) == "LaplaceKernel(lifetime=2.0)"
    assert repr(kernel.clone_with_theta([0.0])) == "LaplaceKernel(lifetime=1.0)"
    two = LaplaceKernel([1.0, 2.0])
    assert repr(two.clone_with_theta(two.theta)) == "LaplaceKernel(lifetime=[1.0, 2.0])"


def test_wrong_use():
    with pytest.raises(ValueError, match="one for each of 3 features, got 2"):
        LaplaceKernel([1.0, 2.0])(X)
    with pytest.raises(ValueError, match="Y is None"):
        LaplaceKernel()(X, Y, eval_gradient=True)


@pytest.mark.parametrize("lifetime", [-1.0, None, np.nan, np.inf, [1.0, -2.0, 1.0]])
def test_lifetimes_that_are_no_widths(lifetime):
    with pytest.raises(ValueError, match="lifetime must hold finite numbers from 0 on"):
        LaplaceKernel(lifetime)(X)


def test_features_of_both_inputs():
    with pytest.raises(ValueError, match="same features, got 3 and 2"):
        LaplaceKernel()(X, Y[:, :2])

import math

import numpy as np
import pytest

from mondrian_bo.acquisitions import (
    ExpectedImprovement,
    LogExpectedImprovement,
    Prediction,
    ProbabilityOfImprovement,
    ThompsonSampling,
    UpperConfidenceBound,
    get_acquisition,
    mixture_moments,
)


def test_moments_are_those_of_draws():
    rng = np.random.default_rng(0)
    prediction = Prediction(rng.normal(size=(5, 3)), rng.uniform(0.1, 2.0, size=(5, 3)))
    mean, std = mixture_moments(prediction)
    # A grid of quantiles per component stands for the mixture.
    normal = rng.standard_normal(400_000)
    for j in range(3):
        draws = prediction.means[:, j, None] + prediction.stds[:, j, None] * normal
        assert mean[j] == pytest.approx(draws.mean(), abs=0.01)
        assert std[j] == pytest.approx(draws.std(), rel=0.01)


def test_moments_by_hand():
    mean, std = mixture_moments(Prediction(np.array([[1.0], [3.0]]), np.array([[2.0], [0.0]])))
    assert mean.tolist() == [2.0]
    assert std.tolist() == [math.sqrt(2.0 + 1.0)]
    # A large common offset leaves the spread alone.
    offset = Prediction(np.array([[1.0], [3.0]]) + 2.0**40, np.array([[2.0], [0.0]]))
    assert mixture_moments(offset)[1].tolist() == std.tolist()


def test_moments_of_few_components_are_those_of_the_formula():
    rng = np.random.default_rng(2)
    for n_components in (2, 3, 4):
        means, stds = rng.normal(size=(2, n_components, 7))
        stds = np.abs(stds)
        means[0, :2], stds[1, 2] = np.inf, np.inf
        means[1, 3] = 1e200
        mean, std = mixture_moments(Prediction(means, stds))
        with np.errstate(over="ignore", invalid="ignore"):
            variance = (stds**2 + (means - means.mean(axis=0)) ** 2).mean(axis=0)
        assert mean.tolist() == means.mean(axis=0).tolist()
        assert std[2:].tolist() == np.sqrt(variance)[2:].tolist()
        assert std[:4].tolist() == [np.inf] * 4


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n_components", [1, 2, 9])
def test_an_infinite_mean_has_an_infinite_deviation(n_components):
    means, stds = np.ones((n_components, 3)), np.ones((n_components, 3))
    means[0, :2] = -np.inf, np.inf
    mean, std = mixture_moments(Prediction(means, stds))
    assert mean.tolist() == [-np.inf, np.inf, 1.0]
    assert std.tolist() == [np.inf, np.inf, 1.0]


def test_bound_is_mean_plus_kappa_std():
    rng = np.random.default_rng(1)
    prediction = Prediction(rng.normal(size=(4, 6)), rng.uniform(0.1, 2.0, size=(4, 6)))
    mean, std = mixture_moments(prediction)
    for kappa in (0.0, 1.0, 2.5):
        scores = UpperConfidenceBound(kappa)(prediction, 0.0)
        assert np.allclose(scores, mean + kappa * std)
        assert np.array_equal(scores, UpperConfidenceBound(kappa)(prediction, 7.0))
    assert np.array_equal(UpperConfidenceBound()(prediction, 0.0), mean + std)


@pytest.mark.parametrize("kappa", [-0.1, math.nan, math.inf])
def test_refused_kappa(kappa):
    with pytest.raises(ValueError, match="`kappa` must be finite and >= 0"):
        UpperConfidenceBound(kappa)
    with pytest.raises(TypeError, match="`kappa` must be a number, got 'a'"):
        UpperConfidenceBound("a")


def test_get_acquisition():
    assert get_acquisition("ucb") == UpperConfidenceBound(kappa=1.0)
    assert get_acquisition("ei") == ExpectedImprovement()
    assert get_acquisition("log_ei") == LogExpectedImprovement()
    assert get_acquisition("pi") == ProbabilityOfImprovement()
    assert get_acquisition("thompson") == ThompsonSampling()
    own = ExpectedImprovement(margin=0.1)
    assert get_acquisition(own) is own
    for bad in ("UCB", "", None, 3, ExpectedImprovement):
        with pytest.raises(ValueError, match=r"one of \['ucb', 'ei', 'log_ei', 'pi', 'thompson'\]"):
            get_acquisition(bad)


def test_thompson_scores_are_the_drawn_values():
    drawn = np.array([[0.5, -1.0, 2.0]])
    scores = ThompsonSampling()(Prediction(drawn, np.zeros((1, 3))), 7.0)
    assert np.array_equal(scores, drawn[0])

"""Known standard errors: learnt values, compared with Gaussian formulas and a plain optimizer."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from mondrian_bo import Float, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import UpperConfidenceBound
from mondrian_bo.optimizer import Arm, Portfolio
from mondrian_bo.optimizer.models.known_noise import KnownNoise

SPACE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})

# A model that does not filter noise itself.
PORTFOLIO = Portfolio((Arm((UpperConfidenceBound(),), options={"posterior": "empirical"}),))


def make(seed=0):
    return MondrianOptimizer(SPACE, surrogate="forest", acquisition=PORTFOLIO, seed=seed)


def tell(model, rows, values, errors):
    model.tell_rows(rows, values, errors=np.broadcast_to(errors, len(rows))[:, None])


def predict(model, rows):
    mean, std = model.predict_rows(rows)
    return mean[:, 0], std[:, 0]


def objective(rows):
    return np.sin(4.0 * rows[:, 0]) + rows[:, 1]


@pytest.mark.parametrize("errors", [0.0, np.nan])
def test_without_errors_nothing_changes(errors):
    rows = SPACE.sample(60, np.random.default_rng(0))
    noisy, plain = make(), make()
    tell(noisy, rows, objective(rows), errors)
    plain.tell_rows(rows, objective(rows))
    test = SPACE.sample(20, np.random.default_rng(1))
    for got, expected in zip(noisy.predict_rows(test), plain.predict_rows(test), strict=True):
        np.testing.assert_array_equal(got, expected)


class Recorder:
    """A model that predicts N(mean, std**2) everywhere and records what it learns."""

    def __init__(self, mean, std):
        self.moments = mean, std
        self.values, self.portions = [], []
        self.noise = KnownNoise(self.learn, self.predict)

    def learn(self, rows, values, observed):
        assert observed is None  # no model weighs trials
        self.values.extend(values[:, 0].tolist())
        self.portions.append(len(values))

    def predict(self, rows):
        return np.full((len(rows), 1), self.moments[0]), np.full((len(rows), 1), self.moments[1])

    def tell_rows(self, rows, values, errors):
        self.noise.tell(rows, values[:, None], errors)

    def predict_rows(self, rows):
        mean, std = self.predict(rows)
        return mean, self.noise.total_std(std)


def test_learnt_values_are_gaussian_posterior_means():
    recorder = Recorder(1.0, 2.0)
    zeros = np.zeros((10, 2))
    tell(recorder, zeros, np.full(10, 1.0), 0.0)
    values, errors = np.array([5.0, -3.0, 2.0]), np.array([0.5, 4.0, 0.0])
    tell(recorder, zeros[:3], values, errors)
    with np.errstate(divide="ignore"):
        precision = 1 / errors**2
    expected = np.where(
        errors > 0, (1.0 / 4 + np.nan_to_num(values * precision)) / (1 / 4 + precision), values
    )
    np.testing.assert_allclose(recorder.values[10:], np.where(errors > 0, expected, values))
    remaining = np.where(errors > 0, 1 / (1 / 4 + precision), 0.0)
    _, std = predict(recorder, zeros[:1])
    np.testing.assert_allclose(std**2, 4.0 + remaining.sum() / 13)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.filterwarnings("error")
def test_the_scale_of_values_does_not_matter(scale):
    """Also where variances are beyond the range of float64."""
    values, errors = np.array([5.0, -3.0, 2.0, 4.0]), np.array([0.5, 4.0, 0.0, np.inf])
    plain, scaled = Recorder(1.0, 2.0), Recorder(scale, 2.0 * scale)
    for one, unit in ((plain, 1.0), (scaled, scale)):
        # The first errors are learnt without a prediction, the next ones with it.
        tell(one, np.zeros((8, 2)), unit * np.full(8, 1.0), unit * np.arange(8.0))
        tell(one, np.zeros((4, 2)), unit * values, unit * errors)
    np.testing.assert_allclose(np.array(scaled.values) / scale, plain.values)
    rows = np.zeros((1, 2))
    np.testing.assert_allclose(predict(scaled, rows)[1] / scale, predict(plain, rows)[1])
    assert predict(plain, rows)[1] > 2.5


@pytest.mark.filterwarnings("error")
def test_errors_and_predictions_of_very_different_sizes():
    """The larger one is nothing beside the other: one is learnt instead of the other."""
    for std, error, expected in ((1e200, 1.0, 6.0), (1.0, 1e200, 1.0), (1e200, 1e200, 3.5)):
        recorder = Recorder(1.0, std)
        tell(recorder, np.zeros((8, 2)), np.full(8, 1.0), 1.0)
        tell(recorder, np.zeros((1, 2)), np.array([6.0]), error)
        assert recorder.values[8] == pytest.approx(expected)
        assert predict(recorder, np.zeros((1, 2)))[1] == pytest.approx(std, rel=0.5)


def test_variances_beyond_the_range_of_floats_are_saved(tmp_path):
    rows = SPACE.sample(12, np.random.default_rng(0))
    optimizer = make()
    tell(optimizer, rows, 1e200 * objective(rows), 1e199 * np.arange(12.0))
    optimizer.save(tmp_path / "optimizer.npz")
    same = MondrianOptimizer.load(tmp_path / "optimizer.npz")
    for got, expected in zip(predict(same, rows), predict(optimizer, rows), strict=True):
        np.testing.assert_array_equal(got, expected)
    same._noise.restore((np.zeros(1), np.ones(1), 0))
    assert (predict(same, rows)[1] < predict(optimizer, rows)[1]).all()


def test_pickles_of_earlier_versions_have_no_units():
    recorder = Recorder(1.0, 2.0)
    tell(recorder, np.zeros((8, 2)), np.full(8, 1.0), 3.0)
    state = {name: value for name, value in vars(recorder.noise).items() if name != "_units"}
    former = KnownNoise.__new__(KnownNoise)
    former.__setstate__(state)
    np.testing.assert_allclose(former.total_std(np.array([[4.0]])), 5.0)


def test_pickles_of_earlier_versions_name_another_method():
    rows = SPACE.sample(12, np.random.default_rng(0))
    optimizer = make()
    tell(optimizer, rows, objective(rows), 0.1)
    current = pickle.dumps(optimizer, protocol=0)
    former = current.replace(b"V_store_outcomes\n", b"V_learn\n")
    assert former != current
    loaded = pickle.loads(former)
    for one in (optimizer, loaded):
        tell(one, rows[:3] ** 2, objective(rows[:3] ** 2), 0.1)
    assert loaded.suggest(rows[:0], 0) == optimizer.suggest(rows[:0], 0)


def test_the_first_values_are_taken_as_they_are():
    recorder = Recorder(0.0, 0.0)
    tell(recorder, np.zeros((5, 2)), np.arange(5.0), 3.0)
    assert recorder.values == [0.0, 1.0, 2.0, 3.0, 4.0]
    _, std = predict(recorder, np.zeros((1, 2)))
    np.testing.assert_allclose(std, 3.0)


def test_failures_and_infinite_errors():
    recorder = Recorder(1.0, 2.0)
    tell(recorder, np.zeros((8, 2)), np.full(8, 1.0), 0.0)
    tell(recorder, np.zeros((2, 2)), np.array([np.nan, 7.0]), np.array([1.0, np.inf]))
    assert np.isnan(recorder.values[8])
    assert recorder.values[9] == 1.0


def test_trials_without_a_value_count_for_nothing():
    """They are none of the first ones, and have no part in the average variance."""
    recorder = Recorder(1.0, 2.0)
    tell(recorder, np.zeros((20, 2)), np.full(20, np.nan), 1.0)
    tell(recorder, np.zeros((8, 2)), np.full(8, 7.0), 0.0)
    assert recorder.values[20:] == [7.0] * 8
    tell(recorder, np.zeros((2, 2)), np.array([np.nan, 6.0]), 1.0)
    # The posterior variance of 6 is 0.8, and its mean is 1 + 0.8 * 5.
    assert recorder.values[29] == pytest.approx(5.0)
    _, std = predict(recorder, np.zeros((1, 2)))
    np.testing.assert_allclose(std**2, 4.0 + 0.8 / 9.0)


def test_a_value_of_infinite_error_has_the_variance_of_the_model():
    recorder = Recorder(1.0, 2.0)
    tell(recorder, np.zeros((8, 2)), np.full(8, 1.0), 0.0)
    tell(recorder, np.zeros((1, 2)), np.array([7.0]), np.inf)
    _, std = predict(recorder, np.zeros((1, 2)))
    np.testing.assert_allclose(std**2, 4.0 + 4.0 / 9.0)


def test_an_outcome_without_a_prediction_is_learnt_as_observed():
    """A constraint that appears later has no model yet."""
    learnt = []
    noise = KnownNoise(lambda _, values, __: learnt.append(values), Recorder(1.0, 2.0).predict)
    noise.tell(np.zeros((8, 2)), np.ones((8, 1)), np.zeros((8, 1)))
    noise.tell(np.zeros((1, 2)), np.array([[6.0, 6.0]]), np.ones((1, 2)))
    np.testing.assert_allclose(learnt[-1], [[5.0, 6.0]])


def test_what_was_told_after_a_state_has_no_effect_once_it_is_restored():
    rows, values, errors = np.zeros((4, 2)), np.array([5.0, -3.0, 2.0, 1.0]), 1.5
    plain, recorder = Recorder(1.0, 2.0), Recorder(1.0, 2.0)
    for n_told in range(4):
        state = recorder.noise.state()
        for _ in range(n_told):
            tell(recorder, rows, 10.0 * values, 3.0)
        recorder.noise.restore(state)
        for one in (plain, recorder):
            tell(one, rows, values, errors)
        assert recorder.values[-4:] == plain.values[-4:]
        assert predict(recorder, rows)[1].tolist() == predict(plain, rows)[1].tolist()


def test_a_portion_is_no_larger_than_the_number_of_trials_before_it():
    recorder = Recorder(1.0, 2.0)
    tell(recorder, np.zeros((100, 2)), np.ones(100), 1.0)
    tell(recorder, np.zeros((250, 2)), np.ones(250), 1.0)
    tell(recorder, np.zeros((900, 2)), np.ones(900), 0.0)
    assert recorder.portions == [8, 8, 16, 32, 36, 100, 150, 900]


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_averaged_away(seed):
    """With errors as large as the signal, a model of the learnt values is nearer to the truth."""
    rng = np.random.default_rng(seed)
    rows = SPACE.sample(300, rng)
    errors = rng.choice([0.02, 1.5], size=300)
    values = objective(rows) + errors * rng.standard_normal(300)
    test = SPACE.sample(200, rng)
    losses = []
    for told in (errors, np.zeros(300)):
        model = make(seed)
        for i in range(0, 300, 10):
            tell(model, rows[i : i + 10], values[i : i + 10], told[i : i + 10])
        mean, std = predict(model, test)
        losses.append(float(np.mean((mean - objective(test)) ** 2)))
        if told.any():
            scores = (mean - objective(test)) / std
            assert 0.3 < np.sqrt(np.mean(scores**2)) < 2.0
    assert losses[0] < 0.7 * losses[1]


def test_many_at_once_are_told_in_portions():
    rng = np.random.default_rng(0)
    rows = SPACE.sample(200, rng)
    values = objective(rows) + 0.5 * rng.standard_normal(200)
    test = SPACE.sample(100, rng)
    losses = []
    for portion in (200, 1):
        model = make()
        for i in range(0, 200, portion):
            tell(model, rows[i : i + portion], values[i : i + portion], 0.5)
        losses.append(float(np.mean((predict(model, test)[0] - objective(test)) ** 2)))
    assert 0.5 < losses[0] / losses[1] < 2.0


def test_later_batches_may_have_fewer_constraints():
    rows = SPACE.sample(30, np.random.default_rng(0))
    optimizer = MondrianOptimizer(SPACE, constraints=["c"], seed=0)
    errors = np.full((20, 2), 0.1)
    optimizer.tell_rows(rows[:20], objective(rows[:20]), rows[:20, :1] - 0.5, errors)
    optimizer.tell_rows(rows[20:], objective(rows[20:]), errors=errors[:10, :1])
    assert optimizer.n_trials == 30
    assert np.isfinite(optimizer.predict_rows(rows)[1]).all()


def test_a_value_that_is_not_known_leaves_all_other_errors():
    """The errors of the other values, and those of the constraint, are learnt as without it."""
    rng = np.random.default_rng(0)
    rows = SPACE.sample(24, rng)
    values, constraints = objective(rows)[:, None], rows[:, :1] - 0.5
    errors = rng.uniform(0.2, 1.0, (24, 2))
    gaps = values.copy()
    gaps[[3, 20]] = np.nan
    exact, full, partial = (MondrianOptimizer(SPACE, constraints=["c"], seed=0) for _ in range(3))
    exact.tell_rows(rows, gaps, constraints, nan_is_failure=False)
    full.tell_rows(rows, values, constraints, errors)
    partial.tell_rows(rows, gaps, constraints, errors, nan_is_failure=False)
    assert partial.n_trials == 22
    moments = [one.predict_rows(rows) for one in (exact, full, partial)]
    for without, expected, got in zip(*moments, strict=True):
        np.testing.assert_array_equal(got[:, 1], expected[:, 1])
        assert not np.allclose(got[:, 0], without[:, 0], rtol=1e-3)
    # Larger errors of the known values, in one call or one after the other.
    for n_calls in (1, 24):
        noisy = MondrianOptimizer(SPACE, constraints=["c"], seed=0)
        for part in np.array_split(np.arange(24), n_calls):
            told = rows[part], gaps[part], constraints[part], 3.0 * errors[part]
            noisy.tell_rows(*told, nan_is_failure=False)
        assert (noisy.predict_rows(rows)[1] > moments[0][1]).all()

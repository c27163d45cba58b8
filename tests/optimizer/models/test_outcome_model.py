"""The model of the objective, with a surrogate that records what it is told."""

from __future__ import annotations

import math
from contextlib import contextmanager

import numpy as np
import pytest

from mondrian_bo.acquisitions import (
    LogExpectedImprovement,
    UpperConfidenceBound,
    mixture_moments,
)
from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.optimizer.models.outcome_transform import OutcomeTransform
from mondrian_bo.optimizer.shared.trials import Trials
from mondrian_bo.surrogates.base import Gradients


def uniform(*shape):
    return np.random.default_rng(9).random(shape)


class Recorder:
    """A surrogate of two components that predicts the nearest learnt value, wider with distance."""

    def __init__(self):
        self.rows, self.values = np.empty((0, 2)), np.empty(0)
        self.learnt, self.replaced = [], []
        self.extensions = []

    def learn(self, rows, values):
        self.learnt.append((rows.copy(), values.copy()))
        self.rows = np.concatenate([self.rows, rows])
        self.values = np.concatenate([self.values, values])

    def set_targets(self, values):
        assert len(values) == len(self.rows)
        self.replaced.append(values.copy())
        self.values = values.copy()

    def predict(self, rows):
        distance = np.abs(rows[:, None] - self.rows[None]).sum(axis=2)
        nearest = distance.argmin(axis=1)
        means = self.values[nearest] + np.array([[-0.5], [0.5]]) * distance.min(axis=1)
        return means, np.broadcast_to(distance.min(axis=1), means.shape).copy()

    def draw(self, rng):
        offset = rng.normal()
        return lambda rows: self.predict(rows)[0].mean(axis=0) + offset

    @contextmanager
    def extended(self, rows, values):
        saved = self.rows, self.values
        self.extensions.append((rows.copy(), values.copy()))
        self.rows, self.values = (
            np.concatenate([self.rows, rows]),
            np.concatenate([self.values, values]),
        )
        yield
        self.rows, self.values = saved


def moments(means, stds):
    """Of a mixture with equal weights, from the definition."""
    mean = means.mean(axis=0)
    return mean, np.sqrt((stds**2 + means**2).mean(axis=0) - mean**2)


def told(n, seed=0):
    rng = np.random.default_rng(seed)
    surrogate = Recorder()
    model = OutcomeModel(lambda: surrogate, Trials(2))
    rows, values = rng.random((n, 2)), rng.normal(size=n)
    for row, value in zip(rows, values, strict=True):
        model.trials.tell(row[None], np.array([value]))
    return model, surrogate, rows, values


def test_learns_nothing_until_asked_and_each_row_once():
    rng = np.random.default_rng(1)
    surrogate = Recorder()
    model = OutcomeModel(lambda: surrogate, Trials(2))
    rows, values = rng.random((300, 2)), rng.normal(size=300)
    told_so_far = 0
    for n_new in (3, 1, 1, 40, 1, 154, 1, 99):
        for i in range(told_so_far, told_so_far + n_new):
            model.trials.tell(rows[i : i + 1], values[i : i + 1])
        n_calls = len(surrogate.learnt)
        assert sum(len(r) for r, _ in surrogate.learnt) == told_so_far
        model.predict(rng.random((2, 2)))
        model.predict(rng.random((2, 2)))
        assert len(surrogate.learnt) == n_calls + 1
        assert np.array_equal(
            surrogate.learnt[-1][0], rows[told_so_far : told_so_far + n_new], equal_nan=True
        )
        told_so_far += n_new
    assert len(model.trials) == 300


def test_values_are_those_of_a_transform_fitted_when_trials_grow_by_a_tenth():
    rng = np.random.default_rng(2)
    surrogate = Recorder()
    model = OutcomeModel(lambda: surrogate, Trials(2))
    values = rng.lognormal(size=60)
    fitted = 0
    for n in range(1, 61):
        model.trials.tell(rng.random((1, 2)), values[n - 1 : n])
        model.predict(rng.random((1, 2)))
        if n >= 1.1 * fitted:
            fitted = n
        expected = OutcomeTransform(values[:fitted])(values[:n])
        assert np.allclose(surrogate.values, expected, atol=1e-12)
    # Each fit but the first replaces all values; there are O(log n) of them.
    assert len(surrogate.replaced) < 35


def test_infinities_rank_as_they_are():
    model = OutcomeModel(Recorder, Trials(2))
    for i, value in enumerate((0.0, -math.inf, math.inf, 5.0)):
        model.trials.tell(np.array([[i / 4, 0.0]]), np.array([value]))
    assert model.trials.best_rows()[:, 0].tolist() == [0.5, 0.75, 0.0, 0.25]
    assert model.trials.best()[1] == math.inf
    prediction = model.predict(uniform(5, 2))
    assert np.isfinite(prediction.means).all()


def test_pending_trials_are_imputed_with_the_values_of_a_drawn_function():
    model, surrogate, _, _ = told(10)
    probes, running = np.split(uniform(7, 2), [4])
    before = model.predict(probes)
    expected = model.draw(np.random.default_rng(3))(running)
    with model.imputing(running, np.random.default_rng(3)):
        (rows, values) = surrogate.extensions[0]
        assert np.array_equal(rows, running)
        assert np.array_equal(values, expected)
        # At running trials nothing is left to learn.
        assert np.allclose(model.predict(running).stds, 0.0)
    after = model.predict(probes)
    assert np.array_equal(before.means, after.means)
    assert np.array_equal(before.stds, after.stds)
    rng = np.random.default_rng(4)
    with model.imputing(np.empty((0, 2)), rng):
        pass
    assert len(surrogate.extensions) == 1
    # Sequential suggestions do not depend on how running trials are imputed.
    assert rng.random() == np.random.default_rng(4).random()


def test_value_to_beat_is_the_best_mean_among_the_best_trials():
    model, surrogate, _, values = told(30)
    # The recorder reproduces what it has learnt, so this is the best transformed value.
    assert model.value_to_beat() == pytest.approx(OutcomeTransform(values)(values).max())
    # With a model that shrinks, the value to beat is less than the luckiest trial.
    surrogate.values *= 0.5
    assert model.value_to_beat() == pytest.approx(0.5 * OutcomeTransform(values)(values).max())


def test_trials_that_are_not_eligible_set_no_value_to_beat():
    model, _, rows, values = told(12)
    for value, eligible in ((99.0, False), (-99.0, True)):
        model.trials.tell(uniform(1, 2), np.array([value]), eligible)
    assert model.value_to_beat() == pytest.approx(model.transform(values).max())
    infeasible = OutcomeModel(Recorder, Trials(2))
    infeasible.trials.tell(rows, values, False)
    assert infeasible.value_to_beat() == -math.inf


def test_calibration_follows_the_errors():
    """A model that is wrong by k standard deviations gets its deviations widened by about k."""
    probe = np.array([[2.0, 2.0]])

    class Wrong(Recorder):
        def __init__(self, error):
            super().__init__()
            self.error = error

        def predict(self, rows):
            # Two equal components, off by `error` of their deviations for whatever comes.
            truth = np.array([self.truth(row) for row in rows])
            deviation = 0.25
            means = np.broadcast_to(truth - self.error * deviation, (2, len(rows)))
            return means, np.full((2, len(rows)), deviation)

        def truth(self, row):
            return self.transform(np.array([row.sum()]))[0]

    def ratio(error):
        surrogate = Wrong(error)
        model = OutcomeModel(lambda: surrogate, Trials(2))
        rows = np.random.default_rng(3).random((400, 2))
        for row in rows:
            model.trials.tell(row[None], np.array([row.sum()]))
            # The transform that is in force when the row is judged.
            surrogate.transform = model._transform
            model.predict(probe)
        return model.predict(probe).stds[0, 0] / 0.25

    assert ratio(2.0) == pytest.approx(2.0, rel=0.02)
    assert ratio(0.25) == pytest.approx(0.25, rel=0.02)
    # One surprise counts as three deviations at most, and so do many.
    assert ratio(50.0) == pytest.approx(3.0, rel=0.02)


class Smooth(Recorder):
    """Two components that do not depend on what is learnt, with derivatives and noise."""

    n_components = 2

    def predict(self, rows):
        x, y = rows.T
        return np.array([x * x, 3.0 * x + y]), np.array([1.0 + x * x, 0.5 + y])

    def predict_targets(self, rows):
        means, stds = self.predict(rows)
        return means, np.hypot(stds, 0.3)

    def gradients(self, rows):
        x, zero, one = rows[:, 0], np.zeros(len(rows)), np.ones(len(rows))
        of_means = [[2.0 * x, zero], [3.0 * one, one]]
        of_stds = [[2.0 * x, zero], [zero, one]]
        by_rows = (np.moveaxis(np.array(part), 1, 2) for part in (of_means, of_stds))
        return Gradients(*self.predict(rows), *by_rows)


def smooth(scale):
    """Return a model whose deviations are multiplied by a scale."""
    model = OutcomeModel(Smooth, Trials(2))
    model.trials.tell(uniform(3, 2), np.arange(3.0))
    model.widen(scale / model.calibration)
    return model


def differences(function, rows, step=1e-6):
    """Return the derivatives of a function of rows, by its last axis."""
    moved = [(function(rows + step * one), function(rows - step * one)) for one in np.eye(2)]
    return np.stack([(up - down) / (2.0 * step) for up, down in moved], axis=-1)


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_gradients_are_those_of_calibrated_predictions(scale):
    model, rows = smooth(scale), uniform(5, 2)
    found = model.gradients(rows)
    for got, expected in zip(found[:2], model.predict(rows), strict=True):
        np.testing.assert_allclose(got, expected)
    for k in (0, 1):
        expected = differences(lambda one, k=k: model.predict(one)[k], rows)
        np.testing.assert_allclose(found[2 + k], expected, atol=1e-6)
    mean, std, *by_rows = model.mixed_gradients(rows)
    for k, got in enumerate((mean, std)):
        np.testing.assert_allclose(got, mixture_moments(model.predict(rows))[k])
        expected = differences(lambda one, k=k: mixture_moments(model.predict(one))[k], rows)
        np.testing.assert_allclose(by_rows[k], expected, atol=1e-6)


@pytest.mark.parametrize("acquisition", [LogExpectedImprovement(), UpperConfidenceBound(2.0)])
def test_scores_and_their_gradients_have_the_deviations_that_the_acquisition_uses(acquisition):
    rows, rng = uniform(5, 2), np.random.default_rng(0)
    for scale in (1.0, 2.5):
        model = smooth(scale)
        score, gradients = model.score(acquisition, rng)
        # A confidence bound has the surrogate's own deviations.
        prediction = model.predict(rows, acquisition.usage.uses_calibrated_variances)
        np.testing.assert_allclose(score(rows), acquisition(prediction, model.value_to_beat()))
        scores, by_rows = gradients(rows)
        np.testing.assert_allclose(scores, score(rows))
        np.testing.assert_allclose(by_rows, differences(score, rows), rtol=1e-3, atol=1e-4)


def test_calibration_does_not_change_the_noise():
    rows = uniform(5, 2)
    for scale in (1.0, 2.5):
        np.testing.assert_allclose(smooth(scale).noise(rows), 0.3)


def test_moments_in_the_units_of_the_values_are_those_of_draws():
    rng = np.random.default_rng(6)
    model = OutcomeModel(Recorder, Trials(2))
    # Skewed, so that the mean is far from the inverse of the mean.
    values = rng.lognormal(sigma=1.2, size=40)
    for value in values:
        model.trials.tell(rng.random((1, 2)), np.array([value]))
    probes = 1.2 + 0.2 * uniform(6, 2)
    mean, std = model.outcome_moments(probes)
    transform = OutcomeTransform(values)
    location, scale = moments(*model.predict(probes))
    normal = rng.standard_normal((200_000, 6))
    draws = transform.inverse(location + scale * normal)
    assert (draws.mean(axis=0) > 1.05 * transform.inverse(location)).all()
    assert np.allclose(mean, draws.mean(axis=0), rtol=0.02)
    assert np.allclose(std, draws.std(axis=0), rtol=0.03)


def test_deviations_are_bounded_where_the_power_transform_ends():
    """Beyond its end there is no value; predictions go as far as the doubled range of values."""
    rng = np.random.default_rng(3)
    model = OutcomeModel(Recorder, Trials(2))
    values = -rng.lognormal(sigma=2.0, size=40)
    for value in values:
        model.trials.tell(rng.random((1, 2)), np.array([value]))
    transform = OutcomeTransform(values)
    probes = np.vstack([uniform(50, 2), 3.0 * uniform(50, 2)])
    mean, std = model.outcome_moments(probes)
    worst = transform.inverse(np.array([-1e6]))[0]
    width = np.ptp(values)
    assert worst >= values.min() - 1.01 * width
    assert (mean >= worst - 1e-9).all()
    # No distribution within three ranges has a larger deviation.
    assert (std <= 1.5 * width).all()
    location, scale = moments(*model.predict(probes))
    draws = transform.inverse(location + scale * rng.standard_normal((100_000, len(probes))))
    # Some of the draws end at the bound. The quadrature has a node for every 0.6 deviations.
    assert ((draws <= worst + 1e-9).mean(axis=0) > 0.05).any()
    assert np.allclose(mean, draws.mean(axis=0), atol=0.1 * width)
    assert np.allclose(std, draws.std(axis=0), atol=0.1 * width)


def test_moments_at_learnt_rows_are_the_values():
    rng = np.random.default_rng(5)
    for scale in (1.0, 1e300, 1e-300):
        model = OutcomeModel(Recorder, Trials(2))
        rows, values = rng.random((20, 2)), scale * rng.lognormal(size=20)
        for row, value in zip(rows, values, strict=True):
            model.trials.tell(row[None], np.array([value]))
        mean, std = model.outcome_moments(rows)
        assert np.allclose(mean / scale, values / scale)
        assert np.allclose(std / scale, 0.0, atol=1e-9)


def test_draw_is_the_surrogates():
    model, surrogate, _, _ = told(12)
    probes = uniform(5, 2)
    drawn = model.draw(np.random.default_rng(7))(probes)
    assert len(surrogate.rows) == 12
    assert np.array_equal(drawn, surrogate.draw(np.random.default_rng(7))(probes))


def test_trials_that_are_gone_are_forgotten():
    """An undone call may have learnt them."""
    model, surrogate, rows, values = told(5)
    model.predict(rows)
    before = model.trials.state()
    model.trials.tell(rows + 0.5, values)
    model.predict(rows)
    assert model.learnt_at == [5, 10]
    model.trials.restore(before)
    surrogate.__init__()
    model.forget()
    model.predict(rows)
    assert model.learnt_at == [5]
    np.testing.assert_array_equal(surrogate.rows, rows)


def test_after_many_calls_former_trials_are_learnt_at_once():
    model, surrogate, rows, _ = told(1002)
    model.learnt_at = list(range(1, 1002))
    model.forget()
    model.predict(rows[:1])
    assert model.learnt_at == [1001, 1002]
    assert [len(part) for part, _ in surrogate.learnt] == [1001, 1]

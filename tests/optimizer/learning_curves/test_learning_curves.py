"""The model of learning curves, compared with plain loops, and its calibration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from mondrian_bo.optimizer.learning_curves.curve_regression import Curve, LocalRegression
from mondrian_bo.optimizer.learning_curves.learning_curves import CurveSettings, LearningCurves


def _curve(values, positions=None, transform=None) -> Curve:
    curve = Curve(transform)
    curve.extend(range(len(values)) if positions is None else positions, values)
    return curve


def _trainings(n, seed, n_steps=20):
    """Curves that rise to different heights at different speeds, with noise, and may cross."""
    rng = np.random.default_rng(seed)
    heights, speeds = rng.normal(size=n), np.exp(rng.normal(-1.5, 0.7, n))
    steps = np.arange(n_steps)
    curves = heights[:, None] - 4.0 * np.exp(-speeds[:, None] * steps)
    return curves + 0.05 * rng.normal(size=curves.shape)


def _model(curves, outcomes=None, **settings) -> LearningCurves:
    model = LearningCurves(CurveSettings(**settings))
    for i, values in enumerate(curves):
        model.tell(values[-1] if outcomes is None else outcomes[i], range(len(values)), values)
    return model


def _random_regression(n=12):
    rng = np.random.default_rng(0)
    features = np.column_stack([np.ones(n), rng.normal(size=(n, 4))])
    return LocalRegression(features, rng.normal(size=n))


# The regression -----------------------------------------------------------------------------------


def test_features_are_those_of_the_transformed_reports() -> None:
    values = np.random.default_rng(0).normal(size=9)
    curve = _curve(values[:4], transform=np.exp)
    curve.extend(range(4, 9), values[4:])
    for n in range(1, 10):
        scaled = np.exp(values[:n])
        expected = (
            1.0,
            scaled[-1],
            scaled.mean() - scaled[-1],
            scaled.max() - scaled[-1],
            scaled[-1] - scaled[max((n + 1) // 2 - 1, 0)],
        )
        assert curve.features(n) == pytest.approx(expected, abs=1e-12)


def test_a_new_transform_replaces_the_former_one() -> None:
    curve = _curve([1.0, 2.0], transform=np.exp)
    negative = np.negative
    curve.set_transform(negative)
    curve.extend([2], [3.0])
    assert curve.features(3) == pytest.approx((1.0, -3.0, 1.0, 2.0, -1.0))


def test_a_prediction_is_that_of_a_weighted_bayesian_regression() -> None:
    regression = _random_regression()
    new = np.array([1.0, 0.3, -0.2, 0.1, 0.5])
    predicted = regression.predict(new[None])
    # Equal to a regression on rows that are multiplied by the square roots of their weights, apart
    # from the number of rows, which is the sum of the weights.
    weights = np.exp(-0.5 * ((regression.features[:, 1] - 0.3) / 0.5) ** 2) + 0.05
    rows = regression.features * np.sqrt(weights)[:, None]
    targets = (regression.outcomes - regression.features[:, 1]) * np.sqrt(weights)
    covariance = np.linalg.inv(rows.T @ rows + 0.3 * np.eye(5))
    mean = covariance @ rows.T @ targets
    shape = 1.0 + 0.5 * weights.sum()
    loss = ((targets - rows @ mean) ** 2).sum() + 0.3 * mean @ mean
    rate = 0.0001 + 0.5 * loss
    scale = math.sqrt(rate / shape * (1.0 + new @ covariance @ new))
    assert predicted.location[0] == pytest.approx(0.3 + new @ mean)
    assert predicted.scale[0] == pytest.approx(scale)
    expected = stats.t.sf(0.7, 2.0 * shape, 0.3 + new @ mean, scale)
    assert predicted.probability(0.7)[0] == pytest.approx(expected)


def test_leave_one_out_is_a_prediction_from_the_others() -> None:
    regression = _random_regression()
    left_out = regression.leave_one_out()
    for i in range(len(regression.outcomes)):
        others = np.arange(len(regression.outcomes)) != i
        rest = LocalRegression(regression.features[others], regression.outcomes[others])
        predicted = rest.predict(regression.features[i : i + 1])
        for one, other in zip(left_out, predicted, strict=True):
            assert one[i] == pytest.approx(other[0])


# Predictions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "gain"),
    [("last", 0.85), ("mean", 0.25), ("max", 0.5)],
    ids=["last", "mean", "best"],
)
def test_it_learns_what_the_outcome_is(outcome, gain) -> None:
    """The last report, the mean, or the best of noisy ones: better than the latest report is."""
    rng = np.random.default_rng(0)
    curves = rng.normal(size=(300, 1)) + rng.normal(size=(300, 20))
    outcomes = {"last": curves[:, -1], "mean": curves.mean(axis=1), "max": curves.max(axis=1)}
    targets = outcomes[outcome]
    model = _model(curves[:100], targets[:100])
    median, spread = np.transpose([model.predict(_curve(values[:19])) for values in curves[100:]])
    errors, naive = median - targets[100:], curves[100:, 18] - targets[100:]
    assert np.sqrt(np.mean(errors**2)) < gain * np.sqrt(np.mean(naive**2))
    # The central 68 % cover as much, and more where the outcome is mostly known already: the prior
    # keeps variances from vanishing.
    covered = np.mean(np.abs(errors) < spread)
    assert 0.58 < covered < (0.8 if outcome == "last" else 1.0)


def test_the_scale_of_values_does_not_matter() -> None:
    curves = _trainings(30, 0)
    plain, scaled = _model(curves[:25]), _model(1e6 * curves[:25] - 3e7)
    for values in curves[25:]:
        one, other = (
            plain.probability(_curve(values[:8])),
            scaled.probability(_curve(1e6 * values[:8] - 3e7)),
        )
        assert one == pytest.approx(other, rel=1e-4)


def test_curves_beyond_the_range_of_squares() -> None:
    curves = np.concatenate([_trainings(20, 0), 1e155 * np.ones((3, 20))])[:, :20]
    found = _model(curves).predict(_curve(_trainings(1, 1)[0, :4] - 9.0))
    assert found is not None
    assert np.isfinite(found).all()


def test_reports_worse_than_all_others_are_not_extrapolated_upwards() -> None:
    """Where small reports end large, a deficit has no sign of a worse end."""
    curves = _trainings(30, 0)
    model = _model(curves, outcomes=-curves[:, -1])
    curve = _curve([-40.0] * 8)
    predicted, median = model.predict(curve), model.predict_quantiles(curve, np.array([0.5]))
    assert predicted is not None and median is not None
    assert predicted[0] == pytest.approx(median[0])


def test_quantiles_are_those_of_the_probabilities() -> None:
    """The best outcome so far is the quantile at one minus the probability of a better one."""
    curves = _trainings(30, seed=1)
    model = _model(curves[:25], outcomes=np.exp(curves[:25, -1]))
    best = float(np.exp(curves[:25, -1].max()))
    for values in curves[25:]:
        curve = _curve(values[:8])
        probability = model.probability(curve)
        assert probability is not None and 0.0 < probability < 1.0
        found = model.predict_quantiles(curve, np.array([1.0 - probability, 0.5]))
        predicted = model.predict(curve)
        assert found is not None and predicted is not None
        assert found == pytest.approx([best, predicted[0]])
    assert model.predict_quantiles(_curve([]), np.array([0.5])) is None


def test_curves_of_different_steps_and_lengths() -> None:
    """A curve is compared with those that go on beyond it, at the latest report before it."""
    model = LearningCurves()
    for i, values in enumerate(_trainings(12, 0)):
        chosen = slice(None) if i % 2 else slice(1, 19, 3)
        model.tell(values[-1], np.arange(20)[chosen], values[chosen])
    for i in range(2):
        # These two end early.
        model.tell(-1.0, range(3), [-2.0, -1.5 - i, -1.0])
    assert model.probability(_curve([0.0], [5])) is not None
    assert model.probability(_curve([0.0], [18])) is not None
    # No curve goes on beyond 19, so nothing could be saved.
    assert model.probability(_curve([0.0], [19])) is None
    assert not model.should_stop(_curve([-100.0], [19]))


@pytest.mark.parametrize("n_long", [1, 3])
def test_very_long_curves_do_not_change_what_is_said_of_others(n_long) -> None:
    """A few trials of 5,000 more reports: others are judged as often, and predicted alike."""
    curves, new = _trainings(40, 0), _trainings(30, 1)
    plain, model = _model(curves), LearningCurves()
    for i, values in enumerate(curves):
        rng, n_more = np.random.default_rng(i), 5000 if i < n_long else 0
        longer = np.concatenate([values, values[-1] + 0.05 * rng.normal(size=n_more)])
        model.tell(values[-1], range(len(longer)), longer)
    for n_reports in (2, 4, 8, 16):
        predictions = [
            np.array([one.predict(_curve(values[:n_reports])) for values in new])
            for one in (plain, model)
        ]
        (expected, spreads), (found, widths) = (one.T for one in predictions)
        assert np.median(np.abs(found - expected) / spreads) < 0.2
        assert 0.7 < np.median(widths / spreads) < 1.5
    stopped = [
        sum(one.should_stop(_curve(values[:n])) for values in new for n in range(2, 20))
        for one in (plain, model)
    ]
    assert stopped[1] > 0.8 * stopped[0] > 0


def test_positions_after_the_warm_up_are_judged() -> None:
    """As finely late in a long training as early: the warm-up takes none of the positions."""
    curves = _trainings(12, 0, n_steps=1000)
    model = _model(curves, n_warmup_steps=900)
    found = {model.probability(_curve(curves[0][:n])) for n in range(901, 1000)}
    assert len(found) > 55


def test_nothing_is_judged_where_fewer_than_three_curves_go_on() -> None:
    model = LearningCurves()
    for i, values in enumerate(_trainings(12, 0, n_steps=300)):
        n_steps = (300, 300, 250)[i] if i < 3 else 100
        model.tell(values[-1], range(n_steps), values[:n_steps])
    curve = _trainings(1, 1, n_steps=300)[0]
    known = [model.probability(_curve(curve[: n + 1])) is not None for n in range(300)]
    assert known == [0 < n < 249 for n in range(300)]


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
@pytest.mark.parametrize("scale", [1.0, 2.0**500, 2.0**900, 2.0**-500, 2.0**-900])
def test_reports_worse_than_all_others_at_any_offset_and_scale(offset, scale) -> None:
    curves = _trainings(30, 0)
    expected = _model(curves).predict(_curve([-40.0] * 8))
    found = _model(scale * (curves + offset)).predict(_curve([scale * (offset - 40.0)] * 8))
    assert expected is not None and found is not None
    assert found[0] / scale - offset == pytest.approx(expected[0], abs=1e-4)
    assert found[1] / scale == pytest.approx(expected[1], rel=1e-5)


def test_curves_told_after_a_fit_do_not_change_its_predictions() -> None:
    """With 128 curves, each new one takes the place of the oldest, here the worst, one."""
    curves = _trainings(130, 0, n_steps=6)
    curves[0] -= 60.0
    model = _model(curves[:127])
    expected = model.predict(_curve([-50.0] * 3))
    for values in curves[127:]:
        model.tell(values[-1], range(6), values)
    assert expected is not None
    assert model.predict(_curve([-50.0] * 3)) == expected


# The guarantee ------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_few_of_the_better_trials_would_have_been_stopped(alpha, seed) -> None:
    """Each finished curve is predicted from a model of the others, without the code's shortcuts."""
    curves = _trainings(24, seed)
    model = _model(curves, threshold=1.0, alpha=alpha, n_startup_trials=3)
    model.probability(_curve(curves[0][:5]))
    better = np.argsort(-curves[:, -1])[:12]
    smallest = []
    for i in better:
        probabilities = []
        for step in range(1, 19):
            rows = [one for j, one in enumerate(model._curves) if j != i]
            rest = LocalRegression(
                np.array([one.features(step + 1) for one in rows]),
                np.delete(model._outcomes, i),
            )
            features = np.array([model._curves[i].features(step + 1)])
            probability = rest.predict(features).probability(model._outcomes[i])[0]
            probabilities.append(probability / (1.0 - (step + 1) / 20))
        smallest.append(min(probabilities))
    allowed = int(alpha * 12)
    assert sum(one < model.threshold * (1.0 - 1e-9) for one in smallest) <= allowed
    # The threshold is the largest with this property.
    assert sum(one < model.threshold * (1.0 + 1e-9) for one in smallest) > allowed


def test_a_trial_is_stopped_below_the_threshold_times_what_remains() -> None:
    """The model is asked for the probability, and the decision follows from it."""
    lengths = np.random.default_rng(0).integers(10, 21, 24)
    curves = [one[:n] for one, n in zip(_trainings(24, 4), lengths, strict=True)]
    model = _model(curves)
    decisions = []
    for values in _trainings(60, 5):
        for n_reports in range(2, 20):
            curve = _curve(values[:n_reports])
            probability = model.probability(curve)
            beyond = lengths[lengths > n_reports]
            if probability is None:
                assert not model.should_stop(curve)
                continue
            remaining = np.mean(1.0 - n_reports / beyond)
            decisions.append((probability, remaining, model.should_stop(curve)))
    assert 0.0 < model.threshold <= 0.1
    for probability, remaining, is_stopped in decisions:
        assert is_stopped == (probability < model.threshold * remaining)
    # Some of these go on only because little remains.
    assert any(one < model.threshold and not is_stopped for one, _, is_stopped in decisions)


def test_few_of_new_better_trials_are_stopped() -> None:
    """Of new trials that are better than most, at most (alpha n + 1) / (n + 1) would be stopped."""
    alpha, n, stopped, n_new = 0.1, 30, 0, 0
    for seed in range(30):
        curves = _trainings(n + 20, seed)
        model = _model(curves[:n], threshold=1.0, alpha=alpha)
        model.probability(_curve(curves[0][:5]))
        median = np.median(curves[:n, -1])
        for values in curves[n:]:
            if values[-1] <= median:
                continue
            n_new += 1
            target = model._transform(values[-1:])
            probabilities = [
                float(model._predict(_curve(values[:step])).probability(target)[0])
                / (1.0 - step / 20)
                for step in range(2, 20)
            ]
            stopped += min(probabilities) < model.threshold
    allowed = (alpha * 15 + 1) / 16
    # One-sided binomial test at the level 1e-3. The median changes with the seed, so that trials of
    # one seed are not quite independent: 1.5 times the deviations.
    assert stopped / n_new < allowed + 1.5 * 3.1 * math.sqrt(allowed * (1 - allowed) / n_new)
    # It is no empty promise: most of the others are stopped early.
    assert stopped > 0


def test_trials_that_cannot_become_the_best_are_stopped_early() -> None:
    curves = _trainings(60, 1)
    model = _model(curves[:40])
    best = curves[:40, -1].max()
    steps = []
    for values in curves[40:]:
        curve = Curve()
        for step, value in enumerate(values):
            curve.extend([step], [value])
            if model.should_stop(curve):
                break
        else:
            step = 20
        steps.append(step)
        assert step == 20 or values[-1] < best
    assert np.mean(steps) < 10


def test_more_best_trials_stop_later() -> None:
    curves = _trainings(40, 2)
    probabilities = []
    for n_best in (1, 3, 10):
        model = _model(curves[:30], n_best=n_best)
        probabilities.append([model.probability(_curve(values[:10])) for values in curves[30:]])
    assert np.all(np.diff(probabilities, axis=0) >= 0.0)


# What is never stopped, and what always is --------------------------------------------------------


def test_nothing_is_stopped_before_enough_curves_and_steps() -> None:
    curves = _trainings(12, 0)
    bad = _curve([-100.0, -100.0, -100.0])
    for n in range(12):
        model = _model(curves[:n], n_startup_trials=6)
        model.tell(5.0)  # without reports, it does not count
        assert model.should_stop(bad) == (n >= 6)
    model = _model(_trainings(40, 0), n_warmup_steps=3)
    assert not model.should_stop(bad)
    bad.extend([3], [-100.0])
    assert model.should_stop(bad)
    assert not model.should_stop(Curve())


def test_diverging_trials_are_stopped() -> None:
    model = _model(_trainings(12, 0))
    for value in (math.nan, -math.inf):
        assert model.should_stop(_curve([1.0, 1.0, value]))
    # It has recovered, or is infinitely good.
    assert not model.should_stop(_curve([math.nan, 1.0, 5.0]))
    assert not model.should_stop(_curve([1.0, 1.0, math.inf]))


def test_diverging_trials_are_not_stopped_before_the_warm_up_ends() -> None:
    model = _model(_trainings(12, 0), n_warmup_steps=3)
    bad = _curve([1.0, 1.0, math.nan])
    assert not model.should_stop(bad)
    bad.extend([3], [math.nan])
    assert model.should_stop(bad)


def test_gaps_of_infeasible_trials_are_not_tolerated() -> None:
    """They are none of the better half, however good they are."""
    curves = _trainings(12, 0)
    model = _model(curves)
    for values in curves:
        model.tell(100.0, range(20), np.where(np.arange(20) == 3, math.nan, values), False)
    assert model.should_stop(_curve([1.0, 1.0, 1.0, math.nan]))


def test_gaps_that_good_trials_have_are_tolerated() -> None:
    curves = _trainings(12, 0)
    curves[:, 3] = math.nan
    model = _model(curves)
    assert not model.should_stop(_curve(curves[int(np.argmax(curves[:, -1]))][:4]))


def test_equal_and_infinite_outcomes_are_learnt() -> None:
    model = _model(np.zeros((10, 5)))
    assert model.probability(_curve([0.0, 0.0])) is not None
    curves = _trainings(12, 0)
    model = _model(curves, outcomes=[-math.inf, *curves[1:, -1]])
    probability = model.probability(_curve(curves[3][:5]))
    assert probability is not None and 0.0 <= probability <= 1.0


def test_curves_are_fitted_again_when_they_have_grown_by_a_tenth(monkeypatch) -> None:
    curves = _trainings(300, 0, n_steps=6)
    model = LearningCurves()
    fitted = []
    original = LearningCurves._calibrated
    monkeypatch.setattr(
        LearningCurves,
        "_calibrated",
        lambda self, better: fitted.append(len(self._curves)) or original(self, better),
    )
    for values in curves:
        model.tell(values[-1], range(6), values)
        model.should_stop(_curve(values[:3]))
    # 3, 4, ... 20, then a tenth more each time: O(log n) fits, over at most 128 curves.
    assert len(fitted) < 60
    assert max(fitted) == 128


@pytest.mark.parametrize("n_latest", [3, 4])
def test_only_the_latest_curves_are_known(n_latest) -> None:
    curves = _trainings(12, 0)
    model = LearningCurves(n_latest=n_latest)
    for k, values in enumerate(curves, start=1):
        model.tell(values[-1], range(len(values)), values)
        assert len(model._latest) == min(k, n_latest)
    assert model._latest[-1].outcome == curves[-1][-1]
    assert model.probability(_curve(curves[3][:3])) is not None


@pytest.mark.parametrize("n_latest", [-1, 0, 1, 2])
def test_fewer_than_three_curves_are_refused(n_latest) -> None:
    with pytest.raises(ValueError, match="at least 3"):
        LearningCurves(n_latest=n_latest)

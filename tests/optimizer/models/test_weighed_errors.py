"""Known errors that differ: each trial has its own noise in the Gaussian processes."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo import Categorical, Float, MondrianOptimizer, SearchSpace
from mondrian_bo.optimizer.constraints.constraint_transform import ConstraintTransform
from mondrian_bo.optimizer.models.outcome_transform import OutcomeTransform
from mondrian_bo.optimizer.row_optimizer import RowOptimizer
from mondrian_bo.optimizer.saving import saved_file
from mondrian_bo.optimizer.shared.trials import Trials
from tests.interrupts import Interrupted, interrupt_at

SPACE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})


def objective(rows):
    return 3.0 * ((rows - (0.3, 0.6)) ** 2).sum(axis=1) + 1.9


def data(n=24, seed=0):
    rng = np.random.default_rng(seed)
    rows = SPACE.sample(n, rng)
    errors = 10.0 ** rng.uniform(-2.0, 0.0, n)
    return rows, objective(rows) + errors * rng.standard_normal(n), errors[:, None]


def tell_each(optimizer, rows, values, errors, **options):
    for i in range(len(rows)):
        here = slice(i, i + 1)
        own = None if errors is None else errors[here]
        optimizer.tell_rows(rows[here], values[here], errors=own, **options)


def model_of(optimizer):
    return optimizer.arms[0][0].models[0]


def same(one, other, rows=None):
    rows = SPACE.sample(9, np.random.default_rng(5)) if rows is None else rows
    for a, b in zip(one.predict_rows(rows), other.predict_rows(rows), strict=True):
        np.testing.assert_array_equal(a, b)
    assert [one.suggest(rows[:1], i) for i in range(2)] == [
        other.suggest(rows[:1], i) for i in range(2)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_a_precise_trial_is_predicted_precisely(seed):
    rng = np.random.default_rng(seed)
    rows, arm = SPACE.sample(20, rng), np.array([[0.35, 0.55]])
    rows, errors = np.vstack([rows, arm]), np.append(np.full(20, 0.5), 0.09)
    values = objective(rows) + errors * rng.standard_normal(21)
    weighing, averaging = (RowOptimizer(SPACE, seed=seed) for _ in range(2))
    tell_each(weighing, rows, values, errors[:, None])
    tell_each(averaging, rows, values, errors[:, None], weighs=False)
    assert model_of(weighing).weighs_errors
    assert not model_of(averaging).weighs_errors
    mean, std = weighing.predict_rows(arm)
    assert std[0, 0] < 0.13
    assert abs(mean[0, 0] - objective(arm)[0]) < 2.5 * std[0, 0]
    assert averaging.predict_rows(arm)[1][0, 0] > 2.0 * std[0, 0]
    # Elsewhere the other errors count.
    mean, std = weighing.predict_rows(rows)
    assert 0.1 < np.abs((mean[:, 0] - objective(rows)) / std[:, 0]).mean() < 1.6


@pytest.mark.parametrize("kind", ["equal", "unknown", "nearly equal", "zero"])
def test_errors_that_do_not_differ_are_averaged(kind):
    rows, values, errors = data()
    told = {
        "equal": np.full_like(errors, 0.3),
        "unknown": np.full_like(errors, np.nan),
        "nearly equal": 0.3 + 0.29 * (errors > 0.1),
        "zero": np.zeros_like(errors),
    }[kind]
    one, other = (RowOptimizer(SPACE, seed=0) for _ in range(2))
    tell_each(one, rows, values, told)
    tell_each(other, rows, values, told, weighs=False)
    assert not model_of(one).weighs_errors
    same(one, other)
    if kind in ("unknown", "zero"):
        plain = RowOptimizer(SPACE, seed=0)
        # The model of the portions is asked for none of them.
        tell_each(plain, rows, values, None)
        for a, b in zip(one.predict_rows(rows), plain.predict_rows(rows), strict=True):
            np.testing.assert_allclose(a, b, rtol=0.2)


def test_a_forest_has_no_noise_of_each_trial():
    rows, values, errors = data()
    one, other = (RowOptimizer(SPACE, surrogate="forest", seed=0) for _ in range(2))
    tell_each(one, rows, values, errors)
    tell_each(other, rows, values, errors, weighs=False)
    same(one, other)


def test_trials_without_an_error_count_as_such():
    """Told before, between or after others."""
    rows, values, _ = data()
    errors = np.full((24, 1), 0.3)
    for gap in (slice(0, 3), slice(9, 12), slice(21, 24)):
        optimizer = RowOptimizer(SPACE, seed=0)
        for part in (slice(0, gap.start), gap, slice(gap.stop, 24)):
            tell_each(optimizer, rows[part], values[part], None if part is gap else errors[part])
        model = model_of(optimizer)
        assert model.weighs_errors
        model.learn()
        _, _, noise = model.surrogate.forest.samples
        assert (np.flatnonzero(noise == 0.0) == np.arange(24)[gap]).all()
        assert np.ptp(np.delete(noise, np.arange(24)[gap])) < 1e-12


def test_failed_trials_have_no_error_that_differs():
    trials = Trials(2)
    rows = np.zeros((2, 2))
    trials.tell(rows, np.ones(2), observed=np.array([[1.0, 0.3], [1.0, 0.4]]))
    trials.tell(rows[:1], np.ones(1), False, np.array([[1.0, np.nan]]))
    assert not trials.errors_differ
    before = trials.state()
    trials.tell(rows[:1], np.ones(1))
    assert trials.errors_differ
    np.testing.assert_array_equal(trials.observed(0, 4)[1], [0.3, 0.4, 0.0, 0.0])
    trials.restore(before)
    assert not trials.errors_differ
    trials.tell(rows[:1], np.ones(1), observed=np.array([[2.0, np.inf]]))
    assert trials.errors_differ
    np.testing.assert_array_equal(trials.observed(2, 4), [[1.0, 2.0], [0.0, np.inf]])


def test_a_model_that_turns_to_weighing_is_one_that_has_always_done_so():
    """Its former trials are learnt again, as observed."""
    rows, values, _ = data()
    errors = np.append(np.full(20, 0.3), np.full(4, 0.03))[:, None]
    optimizer = RowOptimizer(SPACE, seed=0)
    tell_each(optimizer, rows[:20], values[:20], errors[:20])
    assert not model_of(optimizer).weighs_errors
    optimizer.predict_rows(rows)
    tell_each(optimizer, rows[20:], values[20:], errors[20:])
    model = model_of(optimizer)
    before = model.predict(rows)
    model.forget()
    np.testing.assert_array_equal(model.predict(rows), before)
    _, targets, noise = model.surrogate.forest.samples
    np.testing.assert_allclose(np.corrcoef(targets, values)[0, 1], -1.0)
    np.testing.assert_allclose(np.sqrt(noise[0] / noise[-1]), 10.0)


def test_infinite_and_huge_errors():
    rows, values, errors = data()
    errors[3], errors[4], values[5] = np.inf, 1e90, np.inf
    optimizer = RowOptimizer(SPACE, seed=0)
    tell_each(optimizer, rows, values, errors)
    assert np.isfinite(optimizer.predict_rows(rows)).all()
    optimizer.suggest(rows[:1], 0)
    for scale in (1e-200, 1e200):
        scaled = RowOptimizer(SPACE, seed=0)
        tell_each(scaled, rows, scale * values, scale * errors)
        mean, std = scaled.predict_rows(rows)
        np.testing.assert_allclose(mean / scale, optimizer.predict_rows(rows)[0], rtol=1e-3)
        np.testing.assert_allclose(std / scale, optimizer.predict_rows(rows)[1], rtol=1e-3)


@pytest.mark.parametrize("outcomes", ["constraint", "objectives"])
def test_each_outcome_has_its_own_errors(outcomes):
    rows, values, errors = data()
    second = rows[:, :1] - 0.4
    both = np.hstack([errors, np.full_like(errors, 0.1)])
    if outcomes == "constraint":
        optimizer = RowOptimizer(SPACE, seed=0)
        optimizer.tell_rows(rows, values, second, both[:, ::-1])
    else:
        optimizer = RowOptimizer(SPACE, directions=["minimize", "maximize"], seed=0)
        optimizer.tell_rows(rows, np.column_stack([values, second]), None, both)
    models = optimizer._outcome_models()
    expected = [False, True] if outcomes == "constraint" else [True, False]
    assert [one.weighs_errors for one in models] == expected
    mean, std = optimizer.predict_rows(rows)
    assert np.isfinite(mean).all() and (std > 0.0).all()
    optimizer.suggest(rows[:1], 0)


def test_tracked_metrics_weigh_errors_too():
    rows, values, errors = data()
    optimizer = RowOptimizer(SPACE, seed=0)
    optimizer.metrics.tell_rows(rows, values[:, None], errors)
    mean, std = optimizer.metrics.predict_rows(rows)
    precise = errors[:, 0] < 0.05
    assert std[precise].mean() < 0.7 * std[~precise].mean() or std.max() < 0.2
    assert np.abs(mean[:, 0] - objective(rows))[precise].max() < 0.2


@pytest.mark.parametrize("transform", [ConstraintTransform, OutcomeTransform])
@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_slopes_are_limits_of_differences(transform, scale):
    rng = np.random.default_rng(0)
    values = rng.standard_normal(40)
    values[:15] = np.exp(4.0 * values[:15])  # heavy tails
    fitted = transform(scale * values)
    inner = values[(np.abs(values) < 50.0) & (values > values.min())]
    step = 1e-6 * np.maximum(np.abs(inner), 0.1)
    rise = fitted(scale * (inner + step)) - fitted(scale * (inner - step))
    slopes = np.exp(fitted.log_slopes(scale * inner) + np.log(scale))
    np.testing.assert_allclose(slopes, rise / (2.0 * step), rtol=1e-3)
    assert (transform(np.zeros(4)).log_slopes(np.zeros(4)) == -np.inf).all()


def saved_and_loaded(optimizer, path):
    optimizer.save(path)
    return MondrianOptimizer.load(path)


def test_a_loaded_optimizer_goes_on_with_the_same_suggestions(tmp_path):
    space = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0), "z": Categorical(("a", "b"))})
    rng = np.random.default_rng(0)
    optimizer = MondrianOptimizer(space, constraints=["c"], seed=0)
    for n_told in range(14):
        row = space.to_unit(optimizer.ask())[None]
        value = objective(row[:, :2])
        if n_told == 2:
            optimizer.tell_rows(row, value)
        elif n_told == 5:
            optimizer.tell_rows(row, np.full(1, np.nan), None, np.full((1, 1), 0.3))
        else:
            errors = np.array([[0.3 if n_told < 8 else 0.01, rng.choice([0.1, 1.0])]])
            constraints = row[:, :1] - 0.4 if n_told > 3 else None
            optimizer.tell_rows(row, value, constraints, errors[:, : 1 + (n_told > 3)])
    loaded = saved_and_loaded(optimizer, tmp_path / "file")
    rows = space.sample(5, rng)
    for one, other in zip(loaded.predict_rows(rows), optimizer.predict_rows(rows), strict=True):
        np.testing.assert_array_equal(one, other)
    for _ in range(3):
        (params, other) = loaded.ask(), optimizer.ask()
        assert params == other
        row = space.to_unit(params)[None]
        for one in (loaded, optimizer):
            one.tell_rows(row, objective(row[:, :2]), errors=np.full((1, 1), 0.05))
    again = saved_and_loaded(loaded, tmp_path / "again")
    assert again.ask() == loaded.ask()


def test_files_of_former_versions_have_posterior_means_alone(tmp_path, monkeypatch):
    """An optimizer that is loaded from one goes on as one that does not weigh its trials."""
    rows, values, errors = data()
    optimizer, former = (MondrianOptimizer(SPACE, seed=0) for _ in range(2))
    tell_each(former, rows, values, errors, weighs=False)
    tell_each(optimizer, rows, values, errors, weighs=False)
    with monkeypatch.context() as patch:
        patch.setattr(saved_file, "VERSION", (1, 6))
        former.save(tmp_path / "former")
    with np.load(tmp_path / "former") as members:
        assert "errors" not in members.files
    loaded = MondrianOptimizer.load(tmp_path / "former")
    same(loaded, optimizer)
    # Later errors are weighed; the former trials count as exact.
    tell_each(loaded, rows + 1e-3, values, errors)
    assert model_of(loaded).weighs_errors
    assert np.isfinite(loaded.predict_rows(rows)).all()


def test_an_interrupted_tell_leaves_no_trace(tmp_path):
    rows, values, errors = data()
    n_undone = 0
    for n_event in range(1, 1500, 61):
        optimizer, twin = (MondrianOptimizer(SPACE, seed=0) for _ in range(2))
        for one in (optimizer, twin):
            tell_each(one, rows[:10], values[:10], np.full((10, 1), 0.3))
        last = rows[10:12], values[10:12]
        try:
            interrupt_at(n_event, lambda: optimizer.tell_rows(*last, errors=errors[10:12]))  # noqa: B023
        except Interrupted:
            n_undone += optimizer.n_trials == 10
        if optimizer.n_trials == 12:
            twin.tell_rows(*last, errors=errors[10:12])
        for one, name in ((optimizer, "first"), (twin, "second")):
            one.save(tmp_path / name)
        assert MondrianOptimizer.load(tmp_path / "first").ask() == twin.ask()
        assert model_of(optimizer).weighs_errors == model_of(twin).weighs_errors
    assert n_undone

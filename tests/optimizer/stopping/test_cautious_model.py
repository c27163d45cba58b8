"""The cautious model: its lengthscales and surprise against dense algebra, and a wrong stop."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo import Categorical, Condition, Float, Int, MondrianOptimizer, SearchSpace
from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.optimizer.row_optimizer import RowOptimizer
from mondrian_bo.optimizer.shared.trials import Trials
from mondrian_bo.optimizer.stopping.cautious_model import (
    CAREFUL,
    Caution,
    cautious_model,
    roughened,
    surprise,
)
from mondrian_bo.shared.array_types import FloatArray

SPACE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
BOLD = Caution(1.0, surprise=False, branches=False)


def _basin(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sum((rows - 0.3) ** 2, axis=1) + 0.1 * np.sin(20.0 * rows[:, 0]))


def _model(n: int, surrogate: str = "gaussian_process") -> OutcomeModel:
    rows = np.random.default_rng(0).random((n, 2))
    optimizer = RowOptimizer(SPACE, surrogate=surrogate, seed=0)  # type: ignore[arg-type]
    optimizer.tell_rows(rows, _basin(rows))
    (model, _), *_ = optimizer._search.whole.arms
    (only,) = model.models
    return only


def _best(model: OutcomeModel) -> FloatArray:
    return np.asarray(model.trials.rows[np.argmax(model.predict(model.trials.rows).means[0])])


def _dense_prediction(
    model: OutcomeModel, rows: FloatArray, point: FloatArray, factor: float
) -> tuple[float, float]:
    """Predict by dense algebra, with lengthscales times a factor (Rasmussen2006, section 2.7)."""
    covariance = model.surrogate._forest.covariance  # type: ignore[attr-defined]
    values = {
        row.tobytes(): v for row, v in zip(model.trials.rows, model.trials.values, strict=True)
    }
    targets = model.transform(np.array([values[row.tobytes()] for row in rows]))

    def kernel(left: FloatArray, right: FloatArray) -> FloatArray:
        gaps = (left[:, None] - right[None]) / factor
        r = np.sqrt(5.0 * np.sum(covariance.precisions * gaps**2, axis=2))
        return np.asarray(covariance.amplitude * (1.0 + r + r * r / 3.0) * np.exp(-r))

    n, ones = len(rows), np.ones(len(rows))
    matrix = kernel(rows, rows) + covariance.noise * np.eye(n)
    inverse = np.linalg.inv(matrix)
    centred = targets - (ones @ inverse @ targets) / (ones @ inverse @ ones)
    # The leaf's variance is its maximum-likelihood estimate with one more point.
    scale = (1.0 + centred @ inverse @ centred) / (1.0 + n)
    prior_mean = 10.0
    whole = np.linalg.inv(scale * matrix + prior_mean)
    cross = scale * kernel(point[None], rows)[0] + prior_mean
    variance = scale * covariance.amplitude + prior_mean - cross @ whole @ cross
    return float(cross @ whole @ targets), float(np.sqrt(variance))


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_lengthscales_are_multiplied(factor: float) -> None:
    model = _model(40)
    rough = roughened(model, model.trials, factor)
    for point in np.random.default_rng(1).random((5, 2)):
        (mean,), (std,) = rough.predict(point[None])
        expected = _dense_prediction(model, model.trials.rows, point, factor)
        assert (mean[0], std[0]) == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_more_trials_than_a_leaf_holds() -> None:
    """The trees are grown anew, and lengthscales are the halved ones without a fit."""
    model = _model(230)
    rough = roughened(model, model.trials, 0.5)
    known, new = (one.surrogate._forest.covariance for one in (model, rough))  # type: ignore[attr-defined]
    np.testing.assert_allclose(new.precisions, 4.0 * known.precisions)
    assert new.noise == known.noise
    rows = np.random.default_rng(1).random((50, 2))
    errors = rough.predict(rows).means.mean(axis=0) - model.transform(-_basin(rows))
    assert np.abs(errors).max() < 0.1


def test_surprise_is_that_of_the_trials_elsewhere() -> None:
    model = _model(40)
    best = _best(model)
    rows = model.trials.rows
    elsewhere = rows[np.abs(rows - best).max(axis=1) > 0.1]
    assert 20 < len(elsewhere) < 40
    mean, std = _dense_prediction(model, elsewhere, best, 0.5)
    value = float(model.predict(best[None]).means[0, 0])
    expected = max((value - mean) / std, 1.0)
    assert surprise(model, best, 0.5) == pytest.approx(expected, rel=1e-3)
    # A deep hole that nothing around it announces.
    deep = Trials(2)
    deep.tell(rows, model.trials.values - 5.0 * (rows != best).any(axis=1))
    holed = OutcomeModel(model.new_surrogate, deep)
    assert surprise(holed, best, 0.5) > 1.5 * expected


def test_no_surprise_without_trials_elsewhere() -> None:
    trials = Trials(2)
    rows = 0.5 + 0.02 * np.random.default_rng(0).random((20, 2))
    trials.tell(rows, -_basin(rows))
    model = OutcomeModel(_model(5).new_surrogate, trials)
    assert surprise(model, _best(model), 0.5) == 1.0


def test_other_categories_and_missing_parameters_are_elsewhere() -> None:
    """The same numbers with another category, or without a parameter, are another basin."""
    space = SearchSpace(
        {
            "kind": Categorical(("a", "b")),
            "x": Float(0.0, 1.0),
            "y": Float(0.0, 1.0, condition=Condition("kind", ("b",))),
        }
    )
    x, nothing = np.linspace(0.4, 0.45, 6), np.full(6, np.nan)
    here = np.column_stack([np.zeros(6), x, nothing])
    for others, is_other in (
        (np.empty((0, 3)), False),
        (np.column_stack([np.ones(6), x, x]), True),
    ):
        optimizer = RowOptimizer(space, seed=0)
        rows = np.concatenate([here, others])
        optimizer.tell_rows(rows, rows[:, 1] + 5.0 * rows[:, 0])
        (model, _), *_ = optimizer._search.whole.arms
        (one,) = model.models
        assert (surprise(one, here[0], 0.5) > 1.0) == is_other


def test_a_row_with_another_parameter_is_elsewhere() -> None:
    """Neighbouring numbers of layers, of which only the larger one has a width."""
    deep = Condition("layers", tuple(range(11, 21)))
    space = SearchSpace({"layers": Int(1, 20), "width": Float(0.0, 1.0, condition=deep)})
    optimizer = RowOptimizer(space, seed=0)
    shallow = [space.to_unit({"layers": 10})] * 2
    deeper = [space.to_unit({"layers": 11, "width": 0.1 * i}) for i in range(6)]
    rows = np.array([*shallow, *deeper])
    optimizer.tell_rows(rows, np.array([-9.0] * 2 + [1.0] * 6))
    (model, _), *_ = optimizer._search.whole.arms
    (one,) = model.models
    assert surprise(one, rows[0], 0.5) > 1.0


def test_deviations_are_never_narrowed() -> None:
    """A calibration below 1 does not count, one above 1 does, and so does the surprise."""
    model = _model(40)
    rows = np.random.default_rng(1).random((5, 2))
    own = roughened(model, model.trials, 1.0).predict(rows).stds
    for calibration, expected in ((0.4, 1.0), (1.7, 1.7)):
        model.widen(calibration / model.calibration)
        cautious = cautious_model(model, _best(model), BOLD)
        np.testing.assert_allclose(cautious.predict(rows).stds, expected * own)
    z = surprise(model, _best(model), CAREFUL.lengthscales)
    shortened = roughened(model, model.trials, CAREFUL.lengthscales).predict(rows).stds
    cautious = cautious_model(model, _best(model))
    np.testing.assert_allclose(cautious.predict(rows).stds, 1.7 * z * shortened)


def test_surrogate_without_lengthscales() -> None:
    model = _model(40, "forest")
    cautious = cautious_model(model, _best(model))
    assert np.isfinite(cautious.predict(model.trials.rows).stds).all()


def test_wrong_stop_of_the_search_model() -> None:
    """Trials that close in on a local minimum of a rippled bowl: the former rule stops there."""

    def rippled(x: np.ndarray) -> float:
        return float(np.sum((x - 0.13) ** 2 + 0.06 * (1.0 - np.cos(25.0 * (x - 0.13)))))

    # The ripple next to the one of the optimum, in each coordinate.
    minimum = 0.13 + 0.23839 * np.array([1.0, -1.0, 1.0, 1.0])
    rng = np.random.default_rng(3)
    anywhere = rng.uniform(-1.0, 1.0, (20, 4))
    scales = 0.5 * 0.88 ** np.arange(40)[:, None]
    near = np.clip(minimum + scales * rng.standard_normal((40, 4)), -1.0, 1.0)
    space = SearchSpace({f"x{i}": Float(-1.0, 1.0) for i in range(4)})
    optimizer = MondrianOptimizer(space, seed=3)
    for x in (*anywhere, *near, minimum):
        optimizer.tell({f"x{i}": float(x[i]) for i in range(4)}, rippled(x))
    former, careful = (optimizer.remaining_gain(512, one) for one in (BOLD, CAREFUL))
    assert former is not None and careful is not None
    regret = rippled(minimum)
    assert 0.23 < regret < 0.25
    assert rippled(np.array([*space.from_unit(former.row).values()])) > 0.15
    assert np.quantile(former.regrets, 0.95) < 0.8 * regret
    assert np.quantile(careful.regrets, 0.95) > 1.2 * regret


@pytest.mark.parametrize("kind", ["earlier study", "fidelity"])
def test_wrapped_surrogates_have_halved_lengthscales(kind: str) -> None:
    if kind == "fidelity":
        optimizer = MondrianOptimizer(SPACE, fidelity="y", seed=0)
    else:
        earlier = [{"x": x, "y": x * x % 0.7} for x in np.linspace(0.0, 1.0, 12).tolist()]
        values = [one["x"] - one["y"] for one in earlier]
        optimizer = MondrianOptimizer(SPACE, warm_start=[(earlier, values)], seed=0)
    for x, y in np.random.default_rng(0).random((15, 2)).tolist():
        optimizer.tell({"x": x, "y": 1.0 if y > 0.7 else y}, x - y + 0.1 * np.sin(9.0 * x))
    (model, _), *_ = optimizer._search.whole.arms
    (own,) = model.models
    known, new = (
        one.surrogate._surrogate._forest.covariance  # type: ignore[attr-defined]
        for one in (own, roughened(own, own.trials, 0.5))
    )
    np.testing.assert_allclose(new.precisions, 4.0 * known.precisions)
    gain = optimizer.remaining_gain(50)
    assert gain is not None and np.isfinite(gain.regrets).all()

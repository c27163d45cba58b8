"""The remaining gain: joint draws against their moments, and regrets against the truth."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo import Categorical, Float, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions.base import mixture_moments
from mondrian_bo.optimizer.row_optimizer import RowOptimizer
from mondrian_bo.optimizer.stopping.cautious_model import Caution
from mondrian_bo.shared.array_types import FloatArray

SPACE = SearchSpace({"x": Float(0.0, 1.0), "kind": Categorical(("a", "b"))})


def _told(n: int, surrogate: str = "gaussian_process", noise: float = 0.1) -> RowOptimizer:
    rng = np.random.default_rng(0)
    rows = SPACE.sample(n, rng)
    values = (rows[:, 0] - 0.3) ** 2 + 0.2 * rows[:, 1] + noise * rng.normal(size=n)
    optimizer = RowOptimizer(SPACE, surrogate=surrogate, seed=0)  # type: ignore[arg-type]
    optimizer.tell_rows(rows, values)
    return optimizer


@pytest.mark.parametrize(("n", "surrogate"), [(30, "gaussian_process"), (230, "gaussian_process")])
def test_joint_draws_have_the_moments_of_predictions(n: int, surrogate: str) -> None:
    (model, _), *_ = _told(n, surrogate)._search.whole.arms
    (model,) = model.models
    rows = SPACE.sample(8, np.random.default_rng(1))
    draws = model.draw_at(rows, 4000, np.random.default_rng(2))
    mean, std = mixture_moments(model.predict(rows))
    # Five standard errors.
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5.0 * std.max() / 4000**0.5)
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.1)


def test_joint_draws_have_the_covariance_of_draws_of_functions() -> None:
    """Functions drawn one by one, by Matheron's rule, are an independent computation."""
    (model, _), *_ = _told(20)._search.whole.arms
    (model,) = model.models
    rows = SPACE.snap(np.array([[0.1, 0.0], [0.15, 0.0], [0.1, 1.0], [0.9, 1.0]]))
    rng = np.random.default_rng(0)
    joint = np.cov(model.draw_at(rows, 3000, rng).T)
    single = np.array([model.draw(rng)(rows) for _ in range(600)])
    scale = model.predict(rows).stds.mean() / model.predict(rows, calibrated=False).stds.mean()
    size = np.sqrt(np.outer(np.diag(joint), np.diag(joint)))
    np.testing.assert_allclose(joint / size, scale**2 * np.cov(single.T) / size, atol=0.2)


def test_draws_of_other_surrogates() -> None:
    gain = _told(30, "forest").remaining_gain(20)
    assert gain is not None
    assert gain.regrets.shape == (20,)
    assert (gain.regrets >= 0.0).all()


@pytest.mark.parametrize("surrogate", ["gaussian_process", "forest"])
def test_what_the_model_takes_for_noise_may_be_structure(surrogate: str) -> None:
    """Each of some 200 candidates may be better by a deviation of the noise or two."""
    optimizer = _told(60, surrogate)
    (model, _), *_ = optimizer._search.whole.arms
    (model,) = model.models
    noise = model.noise(SPACE.sample(3, np.random.default_rng(1)))
    expected, careful = (
        optimizer.remaining_gain(400, Caution(structure=structure)) for structure in (False, True)
    )
    assert expected is not None and careful is not None
    if surrogate == "forest":
        assert (noise == 0.0).all()
        np.testing.assert_array_equal(careful.regrets, expected.regrets)
        return
    step = float(model.transform.inverse(noise[:1])[0] - model.transform.inverse(np.zeros(1))[0])
    assert 0.05 < step < 0.2  # the objective's own noise is 0.1
    assert careful.regrets.mean() > expected.regrets.mean() + step


def test_regret_shrinks_as_trials_come() -> None:
    few, many = (_told(n, noise=0.01).remaining_gain(200) for n in (6, 60))
    assert few is not None and many is not None
    assert many.regrets.mean() < 0.3 * few.regrets.mean()
    assert many.regrets.mean() < 0.02
    assert many.row[0] == pytest.approx(0.3, abs=0.1)
    assert many.row[1] == 0.0


def test_units_and_direction() -> None:
    """Regrets scale with the values, and a maximised function has those of its negative."""
    regrets = []
    for direction, unit in (("minimize", 1.0), ("minimize", 1000.0), ("maximize", -1.0)):
        rng = np.random.default_rng(0)
        rows = SPACE.sample(20, rng)
        values = unit * ((rows[:, 0] - 0.3) ** 2 + 0.2 * rows[:, 1])
        optimizer = RowOptimizer(SPACE, directions=(direction,), seed=0)  # type: ignore[arg-type]
        optimizer.tell_rows(rows, values)
        gain = optimizer.remaining_gain(100)
        assert gain is not None
        regrets.append(gain.regrets.mean() / abs(unit))
    assert regrets == pytest.approx([regrets[0]] * 3, rel=1e-3)


def test_constraints() -> None:
    """No estimate without a feasible trial; then the recommended trial is feasible."""
    rows = SPACE.sample(30, np.random.default_rng(0))
    values = rows[:, 0]
    for limit, is_known in ((2.0, False), (0.5, True)):
        optimizer = RowOptimizer(SPACE, seed=0)
        optimizer.tell_rows(rows, values, (limit - rows[:, :1]))
        gain = optimizer.remaining_gain(50)
        assert (gain is not None) == is_known
    assert gain is not None
    assert gain.row[0] >= 0.5
    # The best feasible point has the value 0.5.
    assert gain.regrets.max() < gain.row[0] - 0.5 + 0.05


def _told_where_valid(rows: FloatArray) -> RowOptimizer:
    """An optimizer that minimises x where x is at least 1 / 2."""
    optimizer = RowOptimizer(SPACE, is_valid=lambda params: params["x"] >= 0.5, seed=0)
    optimizer.tell_rows(rows, rows[:, 0])
    return optimizer


def test_points_that_are_not_valid_do_not_take_the_places_of_candidates() -> None:
    """Half of all points are better than the valid ones, which trials have not been near."""
    rows = SPACE.sample(20, np.random.default_rng(0)) * [0.3, 1.0] + [0.7, 0.0]
    gain = _told_where_valid(rows).remaining_gain(50)
    assert gain is not None
    assert gain.row[0] == rows[:, 0].min() > 0.7
    assert gain.regrets.mean() > 0.05


def test_the_best_trial_need_not_be_valid() -> None:
    """Valid points are worse: there is nothing to gain."""
    gain = _told_where_valid(SPACE.sample(30, np.random.default_rng(0))).remaining_gain(50)
    assert gain is not None
    assert gain.row[0] < 0.1
    assert (gain.regrets == 0.0).all()


def test_nothing_told_and_several_objectives() -> None:
    assert RowOptimizer(SPACE, seed=0).remaining_gain(10) is None
    with pytest.raises(ValueError, match="single objective"):
        RowOptimizer(SPACE, directions=("minimize", "minimize"), seed=0).remaining_gain(10)


def test_estimates_change_no_suggestion() -> None:
    def run(estimates: bool) -> list[object]:
        optimizer = MondrianOptimizer(SPACE, seed=0, n_startup_trials=4)
        asked = []
        for _ in range(12):
            params = optimizer.ask()
            asked.append(params)
            optimizer.tell(params, (params["x"] - 0.3) ** 2)
            if estimates and optimizer.n_trials >= 4:
                first, second = optimizer.remaining_gain(20), optimizer.remaining_gain(20)
                assert first is not None and second is not None
                np.testing.assert_array_equal(first.regrets, second.regrets)
        return asked

    assert run(True) == run(False)

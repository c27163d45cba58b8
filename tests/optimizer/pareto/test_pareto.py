"""Several objectives: trials near the front, the front that the model believes, and searches."""

from __future__ import annotations

import numpy as np
import pytest
from boxes import corners_of

from mondrian_bo import Categorical, Condition, Float, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import LogExpectedImprovement, Usage, hypervolume
from mondrian_bo.optimizer.pareto.pareto_trials import ParetoTrials

SQUARE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})


@pytest.mark.parametrize("n_objectives", [2, 3, 4])
def test_trials_know_how_many_others_dominate_them(n_objectives):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 5, (80, n_objectives)).astype(float)
    eligible = rng.random(80) < 0.7
    trials = ParetoTrials(1, n_objectives)
    for i in range(80):
        trials.tell(rng.random((1, 1)), values[i : i + 1], bool(eligible[i]))
    counts = [
        sum(
            eligible[j] and (values[j] >= values[i]).all() and (values[j] > values[i]).any()
            for j in range(80)
        )
        for i in range(80)
    ]
    assert np.array_equal(trials.front(), eligible & (np.array(counts) == 0))
    assert np.array_equal(trials.near_front(), eligible & (np.array(counts) <= 2))
    assert np.array_equal(trials.values, values)
    assert np.array_equal(trials.columns[1].values, values[:, 1])


@pytest.mark.parametrize("n_objectives", [2, 3])
def test_trials_know_whether_an_end_of_the_front_has_moved(n_objectives):
    trials = ParetoTrials(1, n_objectives)

    def tell(*values, eligible=True):
        row = np.array([[0.01 * len(trials)]])
        trials.tell(row, np.array([[*values, *[0.0] * (n_objectives - 2)]]), eligible)

    assert trials.has_extended(3, 0.01)
    tell(5.0, 5.0, eligible=False)
    assert trials.has_extended(0, 0.01)
    tell(0.0, 1.0)
    tell(1.0, 0.0)
    assert trials.has_extended(2, 0.01)
    assert not trials.has_extended(0, 0.01)
    tell(0.6, 0.6)
    tell(9.0, -1.0, eligible=False)
    tell(1.005, -0.5)
    assert not trials.has_extended(3, 0.01)
    assert trials.has_extended(3, 0.001)
    assert trials.has_extended(4, 0.01)
    tell(0.3, np.inf)
    tell(0.2, np.inf)
    assert not trials.has_extended(1, 0.01)


def told(function, n=30, seed=0, n_objectives=2, **options):
    optimizer = MondrianOptimizer(
        SQUARE, directions=["minimize"] * n_objectives, seed=seed, **options
    )
    rows = SQUARE.sample(n, np.random.default_rng(seed))
    optimizer.tell_rows(rows, function(rows))
    return optimizer


def bowls(rows):
    return np.column_stack([((rows - centre) ** 2).sum(axis=1) for centre in (0.2, 0.8)])


def test_score_gradients():
    optimizer = told(bowls)
    (model, _), _ = optimizer._search.whole.arms
    score, gradients = model.score(LogExpectedImprovement(), np.random.default_rng(0))
    rows, step = np.array([[0.3, 0.35], [0.6, 0.5], [0.9, 0.1]]), 1e-5
    scores, slopes = gradients(rows)
    np.testing.assert_allclose(scores, score(rows))
    for j in range(2):
        moved = step * np.eye(2)[j]
        expected = (score(rows + moved) - score(rows - moved)) / (2.0 * step)
        np.testing.assert_allclose(slopes[:, j], expected, rtol=1e-3, atol=1e-3)


class Median:
    """An acquisition of a user's own."""

    def __call__(self, prediction, incumbent):
        return np.median(prediction.means, axis=0)


class Gain(Median):
    """One that says that it measures improvements."""

    usage = Usage(measures_improvement=True)


def test_acquisitions_say_whether_they_measure_improvements():
    (model, _), _ = told(bowls).arms
    rows = np.array([[0.3, 0.35], [0.6, 0.5], [0.9, 0.1]])

    def scores(acquisition):
        score, gradients = model.score(acquisition, np.random.default_rng(0))
        return score(rows), gradients is not None

    expected, _ = scores(LogExpectedImprovement())
    gain, has_gradients = scores(Gain())
    np.testing.assert_array_equal(gain, expected)
    assert has_gradients
    own, has_gradients = scores(Median())
    assert not has_gradients and not np.allclose(own, expected)


def test_predictions_of_all_objectives():
    optimizer = told(bowls, n=60)
    mean, std = optimizer.predict([{"x": 0.4, "y": 0.6}, {"x": 0.1, "y": 0.2}])
    expected = bowls(np.array([[0.4, 0.6], [0.1, 0.2]]))
    assert mean.shape == std.shape == (2, 2)
    np.testing.assert_allclose(mean, expected, atol=0.02)


@pytest.mark.parametrize("surrogate", ["gaussian_process", "forest", "amf", "kernel"])
def test_finds_the_front(surrogate):
    optimizer = MondrianOptimizer(
        SQUARE, directions=["minimize", "maximize"], surrogate=surrogate, seed=0
    )
    for _ in range(40):
        params = optimizer.ask()
        first, second = bowls(np.array([[params["x"], params["y"]]]))[0]
        optimizer.tell(params, (first, -second))
    front = optimizer.pareto_front()
    values = np.array([value for _, value in front])
    rows = np.array([list(params.values()) for params, _ in front])
    np.testing.assert_allclose(values * [1.0, -1.0], bowls(rows))
    # On the diagonal between the centres: 2 t**2 and 2 (0.6 - t)**2.
    t = np.linspace(0.0, 0.6, 1001)
    best = 0.72**2 - np.trapezoid(2.0 * (0.6 - t) ** 2, 2.0 * t**2)
    share = 0.97 if surrogate == "gaussian_process" else 0.75
    assert hypervolume(-values * [1.0, -1.0], -np.array([0.72, 0.72])) > share * best


@pytest.mark.parametrize("n_objectives", [3, 4])
def test_more_objectives(n_objectives):
    centres = np.linspace(0.2, 0.8, n_objectives)

    def function(rows):
        return np.column_stack([((rows - centre) ** 2).sum(axis=1) for centre in centres])

    optimizer = told(function, n=12, n_objectives=n_objectives)
    for _ in range(10):
        params = optimizer.ask()
        optimizer.tell(params, function(np.array([list(params.values())]))[0])
    rows = optimizer._search.trials.rows[12:]
    # All points of the front are on the diagonal.
    assert np.median(np.abs(rows[:, 0] - rows[:, 1])) < 0.15


def test_a_lucky_trial_does_not_hold_the_front():
    """With noise, the boxes follow predicted means instead of the best values observed."""
    rng = np.random.default_rng(0)
    optimizer = MondrianOptimizer(SQUARE, directions=["minimize", "minimize"], seed=0)
    rows = SQUARE.sample(60, rng)
    values = bowls(rows) + 0.05 * rng.standard_normal((60, 2))
    lucky = np.array([[0.5, 0.5]])
    values = np.vstack([values, [[-0.5, -0.5]]])
    rows = np.vstack([rows, lucky])
    repeated = np.vstack([rows, np.repeat(lucky, 15, axis=0)])
    more = bowls(repeated[61:]) + 0.05 * rng.standard_normal((15, 2))
    optimizer.tell_rows(repeated, np.vstack([values, more]))
    (model, _), _ = optimizer._search.whole.arms
    _, upper = corners_of(model._boxes(np.random.default_rng(0)))
    corners = np.where(np.isfinite(upper), upper, -np.inf).max(axis=0)
    transformed = [one.transform(np.array([0.5]))[0] for one in model.models]
    assert (corners < transformed).all()


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values * [1e-9, 1e12],
        lambda values: values * [1.0, 0.0],
        lambda values: np.column_stack([values[:, 0], values[:, 0]]),
        lambda values: np.where(values > 0.5, np.inf, values),
    ],
    ids=["scales", "constant", "equal", "infinite"],
)
def test_odd_objectives(change):
    def function(rows):
        return change(bowls(rows))

    optimizer = told(function, n=15)
    for _ in range(5):
        params = optimizer.ask()
        optimizer.tell(params, function(np.array([list(params.values())]))[0])
    assert optimizer.n_trials == 20
    assert optimizer.pareto_front()


def test_failed_trials():
    optimizer = told(bowls, n=12)
    for _ in range(6):
        params = optimizer.ask()
        optimizer.tell(params, (np.nan, 1.0))
        assert params not in [one for one, _ in optimizer.pareto_front()]
    assert optimizer.n_trials == 12


def test_conditional_spaces_with_constraints_in_batches():
    space = SearchSpace(
        {
            "kind": Categorical(("a", "b")),
            "x": Float(0.0, 1.0, condition=Condition("kind", ("a",))),
            "y": Float(0.0, 1.0, condition=Condition("kind", ("b",))),
        }
    )
    optimizer = MondrianOptimizer(
        space, directions=["minimize", "maximize"], constraints=["c"], seed=0
    )
    for _ in range(8):
        batch = optimizer.ask(4)
        assert len({str(params) for params in batch}) == 4
        number = np.array([params.get("x", params.get("y")) for params in batch])
        values = np.column_stack([number, number**0.5])
        optimizer.tell(batch, values, [{"c": one - 0.7} for one in number])
    front = optimizer.pareto_front()
    numbers = [params.get("x", params.get("y")) for params, _ in front]
    assert max(numbers) <= 0.7
    assert len(front) > 15


def test_a_reference_point_limits_the_front():
    optimizer = MondrianOptimizer(
        SQUARE, directions=["minimize", "minimize"], reference_point=[0.1, np.nan], seed=0
    )
    last = []
    for number in range(30):
        params = optimizer.ask()
        values = bowls(np.array([[params["x"], params["y"]]]))[0]
        optimizer.tell(params, values)
        if number >= 15:
            last.append(values[0])
    assert np.mean(np.array(last) <= 0.12) > 0.8


def test_save_and_load(tmp_path):
    optimizer = told(bowls, constraints=["c"])
    optimizer.tell({"x": 0.5, "y": 0.5}, [0.1, 0.2], [0.3])
    optimizer.save(tmp_path / "optimizer")
    again = MondrianOptimizer.load(tmp_path / "optimizer")
    assert again.ask(3) == optimizer.ask(3)


def test_ends_at_rest_are_rarely_extended():
    optimizer = told(bowls, n=20)
    (model, _), _ = optimizer.arms

    def share_of_extensions():
        rng = np.random.default_rng(0)
        model.score(LogExpectedImprovement(), rng)
        references = np.array([model._boxes(rng).coordinates[0, 0] for _ in range(400)])
        return np.mean(references == references.min())

    assert abs(share_of_extensions() - 0.5) < 0.1
    ends = np.array([[0.2, 0.2], [0.8, 0.8]])
    optimizer.tell_rows(ends, bowls(ends))
    between = np.linspace(0.21, 0.79, 40)[:, None] * np.ones(2)
    optimizer.tell_rows(between, bowls(between))
    assert abs(share_of_extensions() - 0.1) < 0.05

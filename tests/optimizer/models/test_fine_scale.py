"""The fine scale of values, and the choice between it and the usual one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import kendalltau

from mondrian_bo import Float, MondrianOptimizer, SearchSpace
from mondrian_bo.optimizer.models import fine_scale
from mondrian_bo.optimizer.models.fine_scale import FineTransform, ScaleChoice
from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.optimizer.models.outcome_transform import OutcomeTransform
from mondrian_bo.optimizer.shared.trials import Trials
from mondrian_bo.surrogates.base import Columns
from mondrian_bo.surrogates.gaussian_process_forest.surrogate import GaussianProcessForestSurrogate

RNG = np.random.default_rng(5)
HEAVY = {
    "lognormal": -RNG.lognormal(0.0, 4.0, 60),
    "large": -1e300 * RNG.lognormal(0.0, 3.0, 40),
    "tiny": -1e-300 * RNG.lognormal(0.0, 3.0, 40),
    "offset": 1e6 - RNG.lognormal(0.0, 3.0, 40),
}
heavy = pytest.mark.parametrize("values", HEAVY.values(), ids=HEAVY.keys())


def cliff(x):
    """A function like BBOB's f6: a smooth valley in one quadrant, cliffs around it."""
    z = x - np.array([0.37, 0.61])
    steep = np.where(z > 0.0, 100.0, 1.0)
    return float(np.sum((steep * (z + 0.3 * z[::-1])) ** 2)) ** 0.9 * 1e3


def bowl(x):
    """A smooth function whose values differ by orders of magnitude, too."""
    z = x - np.array([0.37, 0.61])
    return float(1e6 * z[0] ** 2 + z[1] ** 2)


def surrogate(d=2):
    return GaussianProcessForestSurrogate(
        Columns(np.zeros(d, np.int64), False), np.random.SeedSequence(0)
    )


class Prophet:
    """A surrogate whose left-out predictions are given, for one scale after the other."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.n_calls = 0
        self.sizes = []

    def left_out(self, rows, values):
        self.sizes.append(len(rows))
        assert values.mean() == pytest.approx(0.0, abs=1e-9)
        assert values.std() == pytest.approx(1.0, abs=1e-9)
        error = self.errors[self.n_calls % len(self.errors)]
        self.n_calls += 1
        return error(values)


def exact(values):
    return values + 1e-3, np.full(len(values), 1e-2)


def reverse(values):
    return -values, np.full(len(values), 1.0)


@heavy
def test_is_the_logarithm_of_the_gap(values):
    # In fractions: differences of large values could overflow.
    scaled = values / np.abs(values).max()
    gaps = scaled.max() - scaled
    logs = np.log1p(gaps / np.quantile(gaps, 0.05))
    ascending = np.sort(logs)
    place = np.argmax(np.diff(ascending))
    if np.diff(ascending)[place] > np.log(10.0):
        # A tenth of the slope for bad values.
        bend = min(ascending[place], np.median(logs))
        logs = np.minimum(logs, bend + 0.1 * (logs - bend))
    expected = -logs
    expected = (expected - expected.mean()) / expected.std()
    assert np.allclose(FineTransform(values)(values), expected, atol=1e-6)


@heavy
@pytest.mark.parametrize("bad_slope", [0.1, 1.0])
def test_inverse(values, bad_slope):
    transform = FineTransform(values, bad_slope)
    assert np.allclose(transform.inverse(transform(values)), values, rtol=1e-9, atol=0.0)


@heavy
def test_inverse_is_monotone_and_stays_near_the_range(values):
    inverse = FineTransform(values).inverse(np.linspace(-50.0, 50.0, 401))
    assert np.isfinite(inverse).all()
    size = np.ptp(values)
    shares = inverse / size - values.min() / size
    assert (np.diff(shares) >= 0.0).all()
    assert shares.min() >= -1.0 - 1e-9
    assert shares.max() <= 2.0 + 1e-9


@heavy
def test_goes_on_smoothly_beyond_the_best_value(values):
    transform = FineTransform(values)
    best = values.max()
    steps = transform.unit * np.array([-2e-3, -1e-3, 0.0, 1e-3, 2e-3, 10.0])
    transformed = transform(best + steps)
    slopes = np.diff(transformed[:5])
    assert np.allclose(slopes, slopes[0], rtol=1e-2)
    # The curve is symmetric to the best value.
    below, at, above = transform(best + transform.unit * np.array([-10.0, 0.0, 10.0]))
    assert above - at == pytest.approx(at - below, rel=1e-6)


@pytest.mark.parametrize("penalty", [1e3, 1e6, 1e12])
def test_a_penalty_leaves_room_for_the_good_values(penalty):
    """Some values differ by at most 1, and the others have a penalty."""
    rng = np.random.default_rng(2)
    values = -np.concatenate([rng.uniform(0.0, 1.0, 30), penalty * rng.uniform(0.5, 1.0, 30)])
    shares = []
    for bad_slope in (0.1, 1.0):
        transformed = FineTransform(values, bad_slope)(values)
        good, bad = transformed[:30], transformed[30:]
        assert bad.max() < good.min()
        shares.append(np.ptp(good) / np.ptp(transformed))
    assert shares[0] > max(0.5, shares[1])


def test_values_without_a_cliff_have_one_slope():
    values = -np.geomspace(1e-3, 1e6, 60)
    assert np.array_equal(FineTransform(values)(values), FineTransform(values, 1.0)(values))


def test_infinities():
    values = np.append(-RNG.lognormal(0.0, 3.0, 40), -math.inf)
    transform = FineTransform(values)
    worst = values[:-1].min()
    assert transform(np.array([-math.inf])) == transform(np.array([worst]))
    assert transform(np.array([math.inf])) == transform(np.array([values.max()]))
    assert FineTransform(np.append(values, math.inf)).unit == 0.0
    assert FineTransform(np.full(3, -math.inf)).unit == 0.0


def test_no_unit_where_many_values_are_the_best():
    assert FineTransform(np.array([2.0] * 3 + [1.0, 0.0])).unit == 0.0


def test_chosen_for_a_better_order_of_the_better_half():
    rows, values = RNG.random((40, 2)), HEAVY["lognormal"][:40]
    usual = OutcomeTransform(values)

    def crude(values):
        # The right order, and large errors.
        return values + 1.0, np.full(len(values), 1.0)

    def tiny(values):
        # The wrong order of the better half, and small errors.
        return values + 1e-3 * np.where(np.arange(len(values)) % 2, 1.0, -1.0), np.ones(len(values))

    def vague(values):
        return values + 1e-3, np.full(len(values), 1e9)

    for of_usual, of_fine, is_chosen in (
        (reverse, exact, True),
        (exact, exact, False),
        (exact, reverse, False),
        (tiny, crude, False),
        (reverse, vague, False),
    ):
        found = ScaleChoice().fine_transform(rows, values, usual, Prophet(of_usual, of_fine))
        assert (found is not None) == is_chosen
        if found is not None:
            assert np.array_equal(found(values), FineTransform(values)(values))


def test_goes_back_without_a_gain():
    values, rows = HEAVY["lognormal"], RNG.random((60, 2))
    choice = ScaleChoice()
    for n, of_usual, is_fine in ((30, reverse, True), (45, exact, False)):
        usual, prophet = OutcomeTransform(values[:n]), Prophet(of_usual, exact)
        found = choice.fine_transform(rows[:n], values[:n], usual, prophet)
        assert (found is not None) == is_fine


def test_a_small_gain_is_enough_to_stay():
    """It is not enough to begin with."""
    values, rows = HEAVY["lognormal"], RNG.random((60, 2))

    def nearly(values):
        # The best two values have changed places.
        return np.concatenate([values[1::-1], values[2:]]) + 1e-3, np.ones(len(values))

    latest = rows[:45], values[:45], OutcomeTransform(values[:45])
    assert ScaleChoice().fine_transform(*latest, Prophet(nearly, exact)) is None
    choice, first = ScaleChoice(), OutcomeTransform(values[:30])
    assert choice.fine_transform(rows[:30], values[:30], first, Prophet(reverse, exact)) is not None
    assert choice.fine_transform(*latest, Prophet(nearly, exact)) is not None


@heavy
@pytest.mark.parametrize("scale", [OutcomeTransform, FineTransform])
def test_slopes_are_those_of_differences(values, scale):
    transform = scale(values)
    inner = np.sort(values)[len(values) // 4 : -1]
    steps = 1e-4 * (inner.max() - inner)[:-1]
    inner = inner[:-1]
    slopes = (transform(inner + steps) - transform(inner - steps)) / (2.0 * steps)
    assert np.allclose(transform.log_slopes(inner), np.log(slopes), atol=1e-2)


def test_rank_correlation_is_kendalls():
    one, other = RNG.normal(size=30), RNG.normal(size=30)
    expected = kendalltau(one, other).statistic
    assert fine_scale._rank_correlation(one, other) == pytest.approx(expected)


@pytest.mark.parametrize(
    "values",
    [
        RNG.normal(size=40),  # no heavy tails
        -RNG.lognormal(0.0, 4.0, 29),  # too few trials
        np.round(-RNG.lognormal(0.0, 4.0, 40)),  # steps
        -np.sort(np.append(np.random.default_rng(5).lognormal(0.0, 4.0, 39), 1e-2)).repeat(
            np.where(np.arange(40) == 9, 2, 1)
        ),  # a single tie of good values
        np.append(-RNG.lognormal(0.0, 4.0, 40), math.inf),
        np.full(40, -math.inf),
        np.full(40, 3.0),
    ],
    ids=["light", "few", "steps", "tie", "infinite", "failed", "constant"],
)
def test_not_considered(values):
    prophet = Prophet(reverse, exact)
    rows = RNG.random((len(values), 2))
    usual = OutcomeTransform(values)
    assert ScaleChoice().fine_transform(rows, values, usual, prophet) is None
    assert prophet.n_calls == 0


def test_decisions_are_rare_and_stay():
    values, rows = HEAVY["lognormal"], RNG.random((60, 2))
    prophet, choice = Prophet(reverse, exact), ScaleChoice()
    decided = []
    for n in range(15, 61):
        calls = prophet.n_calls
        found = choice.fine_transform(rows[:n], values[:n], OutcomeTransform(values[:n]), prophet)
        assert (found is not None) == (n >= 30)
        if prophet.n_calls > calls:
            decided.append(n)
    assert decided == [30, 45]


def test_a_decision_rests_on_the_best_and_on_some_others():
    values = -np.random.default_rng(1).lognormal(0.0, 4.0, 1000)
    prophet = Prophet(reverse, exact)
    ScaleChoice().fine_transform(RNG.random((1000, 2)), values, OutcomeTransform(values), prophet)
    assert prophet.sizes == [64, 64]
    order = fine_scale._chosen(values)
    best = np.argsort(-values)
    assert order[:32].tolist() == best[:32].tolist()
    places = np.argsort(best)[order[32:]]
    assert (np.diff(places) > 0).all()
    assert places[0] == 32
    assert places[-1] == 999


def searched(function, n, seed=0):
    optimizer = MondrianOptimizer(SearchSpace({"a": Float(0, 1), "b": Float(0, 1)}), seed=seed)
    rows, values = [], []
    for _ in range(n):
        params = optimizer.ask()
        row = np.array([params["a"], params["b"]])
        rows.append(row)
        values.append(-function(row))
        optimizer.tell(params, function(row))
    return optimizer, np.array(rows), np.array(values)


def scales(function, seeds, n=60):
    """Return for each seed whether a model of a search's trials is on the fine scale."""
    found = []
    for seed in seeds:
        _, rows, values = searched(function, n, seed)
        model = OutcomeModel(surrogate, Trials(2), OutcomeTransform, chooses_scale=True)
        for row, value in zip(rows, values, strict=True):
            model.trials.tell(row[None], np.array([value]))
        found.append(isinstance(model.transform, FineTransform))
    return found


def test_a_function_with_a_cliff_gets_the_fine_scale():
    assert sum(scales(cliff, range(4), n=40)) >= 2


def test_a_smooth_function_stays_on_the_usual_scale():
    assert not any(scales(bowl, range(4)))


def test_a_model_learns_on_the_scale_that_is_chosen():
    rows = RNG.random((60, 2))
    values = -np.exp(20.0 * rows[:, 0])

    class Told(GaussianProcessForestSurrogate):
        def left_out(self, rows, values):
            Told.n_calls += 1
            return exact(values) if Told.n_calls % 2 == 0 else reverse(values)

    def new_surrogate():
        return Told(Columns(np.zeros(2, np.int64), False), np.random.SeedSequence(0))

    Told.n_calls = 0
    for at_once in (True, False):
        model = OutcomeModel(new_surrogate, Trials(2), OutcomeTransform, chooses_scale=True)
        for row, value in zip(rows, values, strict=True):
            model.trials.tell(row[None], np.array([value]))
            if not at_once:
                model.predict(rows[:1])
        assert isinstance(model.transform, FineTransform)
        means = model.predict(rows).means[0]
        assert np.abs(means - model.transform(values)).max() < 0.1
        # The same after an interruption.
        before = model.predict(np.full((5, 2), 0.5)).means
        model.forget()
        assert np.array_equal(model.predict(np.full((5, 2), 0.5)).means, before)


def test_other_models_keep_their_transform():
    values, rows = HEAVY["lognormal"], RNG.random((60, 2))
    model = OutcomeModel(surrogate, Trials(2), OutcomeTransform)
    for row, value in zip(rows, values, strict=True):
        model.trials.tell(row[None], np.array([value]))
    assert isinstance(model.transform, OutcomeTransform)

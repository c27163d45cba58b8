"""The quadratic model of the trials nearest to the incumbent."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, spearmanr

from mondrian_bo import Float, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import UpperConfidenceBound
from mondrian_bo.optimizer import Arm, Portfolio
from mondrian_bo.optimizer.search import step_choice
from mondrian_bo.optimizer.steps import local_quadratic as module
from mondrian_bo.optimizer.steps import ridge_regression
from mondrian_bo.optimizer.steps.local_quadratic import draw_quadratic
from mondrian_bo.optimizer.steps.ridge_regression import RidgeRegression, correlation_of, ranks_of
from mondrian_bo.search_space import Categorical, Condition


def make_regression(seed, n=30, p=6):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, p)) * np.array([3.0, 1.0, 1.0, 0.3, 0.1, 1.0])
    targets = 5.0 + features @ rng.normal(size=p) + 0.5 * rng.normal(size=n)
    return features, targets, np.exp(-2.0 * rng.random(n))


def by_least_squares(features, targets, weights, ridge):
    """Return intercept and coefficients; the weights have mean 1."""
    design = np.column_stack([np.ones(len(targets)), features])
    penalty = ridge * np.diag([0.0] + [1.0] * features.shape[1])
    gram = design.T @ (weights[:, None] * design) + penalty
    return np.linalg.solve(gram, design.T @ (weights * targets)), np.linalg.inv(gram)


def log_evidence(features, targets, weights, ridge):
    """Return the log density at the best noise, and that noise, without the intercept's direction.

    An orthonormal basis of all contrasts of the weighted targets removes the flat intercept.
    """
    n = len(targets)
    roots = np.sqrt(weights)
    basis = np.linalg.svd(roots[None])[2][1:]
    design, values = basis @ (roots[:, None] * features), basis @ (roots * targets)
    covariance = np.eye(n - 1) + design @ design.T / ridge
    noise = values @ np.linalg.solve(covariance, values) / (n - 1)
    return multivariate_normal(np.zeros(n - 1), noise * covariance).logpdf(values), noise


@pytest.mark.parametrize("seed", range(3))
def test_ridge_regression_is_that_of_dense_algebra(seed):
    features, targets, weights = make_regression(seed)
    fit = RidgeRegression(features, 7.0 * weights).fit(targets[None], ranks_of(targets))
    weights = weights / weights.mean()
    # Dense algebra loses the evidence of smaller ones to rounding; they are far from the best.
    ridges = ridge_regression._RIDGES[ridge_regression._RIDGES > 1e-7]
    evidences = [log_evidence(features, targets, weights, r)[0] for r in ridges]
    ridge = ridges[int(np.argmax(evidences))]
    _, noise = log_evidence(features, targets, weights, ridge)
    coefficients, inverse = by_least_squares(features, targets, weights, ridge)
    assert np.allclose(fit.mean, coefficients[1:])
    assert np.allclose(fit.factor @ fit.factor.T, noise * inverse[1:, 1:])
    for i in range(len(targets)):
        rest = np.arange(len(targets)) != i
        parts = features[rest], targets[rest], weights[rest], ridge
        own, _ = by_least_squares(*parts)
        assert fit.left_out[i] == pytest.approx(own[0] + features[i] @ own[1:])
    assert fit.correlation == pytest.approx(spearmanr(fit.left_out, targets).statistic)


def test_ridge_regression_has_the_scale_that_ranks_best():
    features, targets, weights = make_regression(0)
    # An increasing function of the targets that no linear one is near to.
    steep = np.exp(8.0 * targets / targets.std())
    regression, ranks = RidgeRegression(features, weights), ranks_of(targets)
    one, other = (regression.fit(some[None], ranks) for some in (targets, steep))
    assert other.correlation < one.correlation
    for scales in ([targets, steep], [steep, targets]):
        found = regression.fit(np.array(scales), ranks)
        for own, expected in zip(found, one, strict=True):
            assert np.array_equal(own, expected)


def bowl(rows, best):
    distances = (rows - best) * np.arange(1.0, rows.shape[1] + 1.0)
    return -(distances**2).sum(axis=1) - 0.5 * distances[:, 0] * distances[:, 1]


@pytest.mark.parametrize(("d", "n"), [(2, 20), (4, 60), (12, 80)])
def test_the_optimum_of_a_bowl_is_found(d, n):
    rng = np.random.default_rng(d)
    rows, best = 0.3 + 0.4 * rng.random((n, d)), np.full(d, 0.45)
    targets = bowl(rows, best) if d <= 4 else -((rows - best) ** 2).sum(axis=1)
    centre = rows[np.argmax(targets)]
    drawn = draw_quadratic(rows, targets[:, None], centre, np.zeros(d, dtype=bool), rng)
    probes = np.concatenate([centre[None], rng.random((20, d))])
    ends = drawn.climb(probes)
    units = in_units(drawn, ends)
    assert np.all((units >= drawn.low - 1e-9) & (units <= drawn.high + 1e-9))
    assert np.all((ends >= 0.0) & (ends <= 1.0))
    # A concave function has one maximum, wherever the ascent starts.
    assert np.allclose(ends, ends[0], atol=1e-6)
    inside = rng.uniform(drawn.low, drawn.high, (200, d))
    rows_inside = centre + inside @ drawn.axes
    values = bowl(rows_inside, best) if d <= 4 else -((rows_inside - best) ** 2).sum(axis=1)
    assert np.corrcoef(drawn(rows_inside), values)[0, 1] > 0.999
    at_end = bowl(ends[:1], best) if d <= 4 else -((ends[:1] - best) ** 2).sum(axis=1)
    assert at_end >= values.max() - 1e-5
    # Outside is worse than all of the inside.
    outside = np.where(np.arange(d) == 0, drawn.high + 0.01, inside)
    assert drawn(centre + outside @ drawn.axes).max() < drawn(rows_inside).min()


def in_units(drawn, rows):
    return np.linalg.solve(drawn.axes.T, (rows - drawn.centre).T).T


def is_turned(drawn):
    return not np.array_equal(drawn.axes, np.diag(np.diag(drawn.axes)))


def valley(rows, best, angle=0.5):
    """Return values of an oblique valley, a thousand times as long as wide."""
    gaps = rows - best
    along = np.cos(angle) * gaps[:, 0] + np.sin(angle) * gaps[:, 1]
    across = np.cos(angle) * gaps[:, 1] - np.sin(angle) * gaps[:, 0]
    return -(along**2) - 1e6 * across**2


def along_the_valley(rng, n, best):
    """Return trials of a search that has come to the bottom of the valley, on one side."""
    t, across = rng.uniform(0.0, 0.3, n), rng.normal(size=n) * 10.0 ** rng.uniform(-4.0, -1.0, n)
    step = np.array([np.cos(0.5), np.sin(0.5)]), np.array([-np.sin(0.5), np.cos(0.5)])
    return best + t[:, None] * step[0] + across[:, None] * step[1]


def gains_in_the_valley(best, n=100):
    """Return factors by which one suggestion is nearer to the best value than all trials."""
    gains, turned = [], 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = along_the_valley(rng, n, best)
        rows = rows[((rows >= 0.0) & (rows <= 1.0)).all(axis=1)]
        targets = valley(rows, best)
        centre = rows[np.argmax(targets)]
        drawn = draw_quadratic(rows, targets[:, None], centre, np.zeros(2, dtype=bool), rng)
        end = np.clip(drawn.climb(centre[None]), 0.0, 1.0)
        gains.append(max(valley(end, best)[0], targets.max()) / targets.max())
        turned += is_turned(drawn)
    return gains, turned


def test_a_quadratic_follows_an_oblique_valley(monkeypatch):
    best = np.array([0.4, 0.3])
    gains, turned = gains_in_the_valley(best)
    assert turned == 12
    monkeypatch.setattr(module, "_turned", lambda *_: None)
    along_axes, none = gains_in_the_valley(best)
    assert none == 0
    assert np.median(gains) < 1e-6 < 1e-2 < np.median(along_axes)


def test_turned_only_where_it_predicts_no_worse_and_stays_in_the_space(monkeypatch):
    rng = np.random.default_rng(0)
    best, numbers = np.array([0.4, 0.3]), np.zeros(2, dtype=bool)
    rows = along_the_valley(rng, 100, best)
    targets = valley(rows, best)
    centre = rows[np.argmax(targets)]
    assert is_turned(draw_quadratic(rows, targets[:, None], centre, numbers, rng))
    fit, found = module._fit, []

    def with_correlation(one, correlation):
        return one._replace(ridge=one.ridge._replace(correlation=correlation))

    def worse(*args):
        found.append(fit(*args))
        return with_correlation(found[-1], 0.9 - 0.01 * len(found))

    monkeypatch.setattr(module, "_fit", worse)
    assert not is_turned(draw_quadratic(rows, targets[:, None], centre, numbers, rng))
    assert len(found) == 3
    # The best trials have directions even where no other fit predicts anything.
    correlations = iter((0.0, 0.4, 0.8))
    monkeypatch.setattr(
        module, "_fit", lambda *args: with_correlation(fit(*args), next(correlations))
    )
    assert is_turned(draw_quadratic(rows, targets[:, None], centre, numbers, rng))
    monkeypatch.undo()
    # The lower end of the valley is out of the space: the best point is at a bound.
    shifted = rows - best - 0.02
    inside = shifted[(shifted >= 0.0).all(axis=1)]
    targets = valley(inside, np.full(2, -0.02))
    for seed in range(5):
        draws = np.random.default_rng(seed)
        drawn = draw_quadratic(inside, targets[:, None], inside[np.argmax(targets)], numbers, draws)
        ends = drawn.climb(inside[:5])
        assert np.all((ends[0] >= 0.0) & (ends[0] <= 1.0))


def degenerate(rng):
    """Return trials that nearly coincide, lie on a line or on a grid, or repeat."""
    d, n = int(rng.integers(1, 7)), int(rng.integers(8, 120))
    rows = rng.random((n, d))
    kind = rng.integers(5)
    if kind == 1:
        rows = 0.5 + 10.0 ** rng.uniform(-18.0, -1.0, (n, d)) * rng.normal(size=(n, d))
    elif kind == 2:
        rows = rng.random((3, d))[rng.integers(3, size=n)]
    elif kind == 3:
        rows = rows[:, :1] + 10.0 ** rng.uniform(-300.0, -8.0) * rng.normal(size=(n, d))
    elif kind == 4:
        rows = np.floor(4.0 * rows) / 3.0
        rows[:, -1] += 10.0 ** rng.uniform(-200.0, 0.0) * rng.normal(size=n)
    smooth = -((rows - 0.4) ** 2).sum(axis=1)
    targets = [smooth, np.round(smooth, 1), 1e8 * rng.standard_cauchy(n)]
    return rows, targets[rng.integers(3)]


@pytest.mark.filterwarnings("error")
def test_degenerate_trials_are_no_error():
    n_drawn = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        rows, targets = degenerate(rng)
        centre, numbers = rows[np.argmax(targets)], np.zeros(rows.shape[1], dtype=bool)
        drawn = draw_quadratic(rows, targets[:, None], centre, numbers, rng)
        if drawn is not None:
            n_drawn += 1
            ends = drawn.climb(rows[:5])
            assert np.isfinite(ends).all()
            assert np.isfinite(drawn(np.concatenate([ends, rows]))).all()
    assert n_drawn > 100


def test_products_are_used_where_they_predict_better():
    """Left-out predictions of dense algebra, with and without products, decide."""
    rng = np.random.default_rng(6)
    d, centre = 6, np.full(6, 0.5)
    diagonal = {}
    for name in ("separable", "oblique"):
        n = 40 if name == "separable" else 60
        rows = np.concatenate([centre[None], 0.3 + 0.4 * rng.random((n - 1, d))])
        gaps = rows - 0.45
        targets = -(gaps**2).sum(axis=1)
        if name == "oblique":
            targets -= 8.0 * (gaps[:, 0] - gaps[:, 1]) ** 2
        else:
            targets += 0.002 * rng.normal(size=n)
        units = 8.0 * (rows - centre)
        fit = module._fit(units, np.triu_indices(d), [], targets[:, None])
        curvatures = fit.curvatures(fit.ridge.mean)
        diagonal[name] = np.array_equal(curvatures, np.diag(np.diag(curvatures)))
        correlations = []
        i, j = np.triu_indices(d)
        ranks = ranks_of(targets)
        weights = np.exp(-module._DECAY * (n - 1 - ranks) / n)
        for kept in (np.ones(len(i), dtype=bool), i == j):
            features = np.column_stack([units, (units[:, i] * units[:, j])[:, kept]])
            found = [
                RidgeRegression(features, weights).fit(one[None], ranks).left_out
                for one in (targets / targets.std(), module._normal_scores(ranks, n))
            ]
            correlations.append(max(spearmanr(one, targets).statistic for one in found))
        assert diagonal[name] == (correlations[1] > correlations[0])
    assert diagonal == {"separable": True, "oblique": False}


def test_ascent_never_descends():
    rng = np.random.default_rng(0)
    rows = rng.random((40, 3))
    targets = np.cos(5.0 * rows[:, 0]) + rows[:, 1] * rows[:, 2] + 0.1 * rng.normal(size=40)
    centre = rows[np.argmax(targets)]
    for seed in range(20):
        draws = np.random.default_rng(seed)
        drawn = draw_quadratic(rows, targets[:, None], centre, np.zeros(3, dtype=bool), draws)
        probes = centre + draws.uniform(drawn.low, drawn.high, (30, 3)) @ drawn.axes
        assert np.all(drawn(drawn.climb(probes)) >= drawn(probes) - 1e-9)


def test_draws_scatter_where_targets_do():
    rng = np.random.default_rng(1)
    rows, numbers = rng.random((60, 2)), np.zeros(2, dtype=bool)
    signal = bowl(rows, np.array([0.4, 0.6]))
    centre = rows[np.argmax(signal)]
    spreads = []
    for noise in (0.0, 0.05):
        targets = signal + noise * rng.normal(size=60)
        ends = [
            draw_quadratic(rows, targets[:, None], centre, numbers, rng).climb(centre[None])[0]
            for _ in range(50)
        ]
        spreads.append(np.std(ends, axis=0).max())
    assert spreads[0] < 1e-4 < spreads[1] > 10.0 * spreads[0]


def test_none_where_left_out_trials_are_not_predicted():
    rng = np.random.default_rng(2)
    numbers = np.zeros(3, dtype=bool)
    rows = rng.random((40, 3))
    smooth = -((rows - 0.5) ** 2).sum(axis=1)
    few = module.FEWEST_TRIALS
    for targets, n, is_drawn in (
        (smooth, 40, True),
        (smooth, few - 1, False),
        (rng.normal(size=40), 40, False),
        (np.zeros(40), 40, False),
        (np.full(40, 0.1), 40, False),
    ):
        centre = rows[np.argmax(targets[:n])]
        drawn = draw_quadratic(rows[:n], targets[:n, None], centre, numbers, rng)
        assert (drawn is not None) == is_drawn
    same = np.repeat(rows[:1], 20, axis=0)
    assert draw_quadratic(same, smooth[:20, None], same[0], numbers, rng) is None


def test_choices_that_are_near_have_levels():
    rng = np.random.default_rng(3)
    rows = np.column_stack([0.3 + 0.3 * rng.random((18, 2)), rng.integers(2, size=18)])
    targets = 0.1 * rows[:, 2] - ((rows[:, :2] - 0.45) ** 2).sum(axis=1)
    centre = rows[np.argmax(targets)]
    drawn = draw_quadratic(rows, targets[:, None], centre, np.array([False, False, True]), rng)
    at = np.repeat(centre[None], 3, axis=0)
    at[:, 2] = 0.0, 1.0, 2.0
    values = drawn(at)
    # A choice that was never seen is outside.
    assert values[1] > values[0] > values[2] + 10.0


def test_a_choice_that_no_near_trial_has_is_outside():
    rng, is_categorical = np.random.default_rng(4), np.array([False, False, True])
    rows = np.hstack([rng.random((40, 2)), np.ones((40, 1))])
    targets = -((rows - [0.4, 0.7, 0.0]) ** 2).sum(axis=1, keepdims=True)
    drawn = draw_quadratic(rows, targets, rows[np.argmax(targets)], is_categorical, rng)
    assert drawn(rows[:1])[0] > drawn(rows[:1] * [1.0, 1.0, 0.0])[0] + 10.0


def test_absences_stay():
    rng = np.random.default_rng(4)
    rows = rng.random((40, 2))
    rows[::3, 1] = np.nan
    targets = -((rows[:, 0] - 0.4) ** 2) - np.nan_to_num((rows[:, 1] - 0.7) ** 2)
    targets[::3] -= 1.0
    centre = rows[np.argmax(targets)]
    drawn = draw_quadratic(rows, targets[:, None], centre, np.zeros(2, dtype=bool), rng)
    at = np.array([centre, [centre[0], np.nan]])
    values = drawn(at)
    assert values[0] > values[1] + 10.0
    near, far = centre[None] + 1e-3, centre[None] + 10.0
    assert drawn.values(near) == drawn(near)
    assert drawn.values(far) > drawn(far)
    ends = drawn.climb(at)
    assert np.array_equal(np.isnan(ends), np.isnan(at))
    assert drawn(ends)[0] >= values[0]


SPACE = SearchSpace({"x": Float(-1.0, 1.0), "y": Float(-1.0, 1.0)})


def told(share, n_trials=30, seed=0, after=0, **settings):
    arm = Arm((UpperConfidenceBound(),), quadratic=share, quadratic_after=after)
    optimizer = MondrianOptimizer(
        SPACE, surrogate="forest", acquisition=Portfolio((arm,)), seed=seed, **settings
    )
    values = []
    for _ in range(n_trials):
        params = optimizer.ask()
        values.append((params["x"] - 0.3) ** 2 + 3.0 * (params["y"] - 0.5 * params["x"]) ** 2)
        optimizer.tell(params, values[-1], [params["x"]] if settings.get("constraints") else None)
    return optimizer, values


def test_a_search_with_quadratics_finds_more_digits():
    digits = []
    for seed in range(3):
        plain, found = told(0.0, seed=seed)[1], told(0.5, seed=seed)[1]
        assert plain[:10] == found[:10]
        digits.append(np.log10([min(plain), min(found)]))
    plain_digits, found_digits = np.mean(digits, axis=0)
    assert found_digits < plain_digits - 2.0


def test_few_trials_need_a_quadratic_that_is_sure(monkeypatch):
    """Until 20 trials for each parameter, or fewer, with two trials for each parameter."""
    calls = []

    def record(rows, *others):
        calls.append((len(rows), others[-1]))

    monkeypatch.setattr(step_choice, "draw_quadratic", record)

    def sure(**settings):
        calls.clear()
        told(1.0, 44, n_startup_trials=2, **settings)
        assert [n for n, _ in calls] == list(range(calls[0][0], 44))
        return [n for n, is_sure in calls if is_sure]

    assert sure(after=20) == list(range(4, 21))
    assert sure(after=1000) == list(range(4, 41))
    assert sure(after=0) == []
    assert calls[0][0] == 2


def test_few_trials_need_all_parameters():
    """A quadratic does not choose which parameters are active."""
    space = SearchSpace(
        {
            "kind": Categorical(("a", "b")),
            "x": Float(-1.0, 1.0, condition=Condition("kind", ("a",))),
            "y": Float(-1.0, 1.0, condition=Condition("kind", ("b",))),
        }
    )

    def values(share, after):
        arm = Arm((UpperConfidenceBound(),), quadratic=share, quadratic_after=after)
        optimizer = MondrianOptimizer(space, acquisition=Portfolio((arm,)), seed=0)
        for _ in range(30):
            params = optimizer.ask()
            value = params.get("x", 0.5) ** 2 + params.get("y", 0.5) ** 2
            optimizer.tell(params, value)
            yield value

    plain = list(values(0.0, 1000))
    assert list(values(1.0, 1000)) == plain
    assert list(values(1.0, 0)) != plain


def test_predictions_of_a_sure_quadratic_are_nearly_perfect():
    rng = np.random.default_rng(0)
    rows = rng.random((60, 2))
    numbers, centre = np.zeros(2, dtype=bool), np.full(2, 0.5)
    found = []
    for noise in (0.0, 0.01):
        targets = -((rows - centre) ** 2).sum(axis=1) + noise * rng.normal(size=60)
        targets = targets[:, None]
        drawn = [
            draw_quadratic(rows, targets, centre, numbers, rng, sure) for sure in (False, True)
        ]
        found.append([one is not None for one in drawn])
    assert found == [[True, True], [True, False]]


def test_the_quadratic_has_the_scale_on_which_it_predicts_best():
    """On the second scale the function is a quadratic, far from the trials, too."""
    rng = np.random.default_rng(0)
    rows, best = rng.random((40, 3)), np.array([0.1, 0.8, 0.5])
    values = -((rows - best) ** 2 * [1.0, 5.0, 20.0]).sum(axis=1)
    scales = np.stack([-np.log1p(-100.0 * values), values], axis=1)
    centre, numbers = rows[np.argmax(values)], np.zeros(3, dtype=bool)

    def error(targets):
        drawn = draw_quadratic(rows, targets, centre, numbers, np.random.default_rng(1), True)
        return np.abs(drawn.climb(centre[None])[0] - best).max()

    assert error(scales) < 1e-4 < 0.01 < error(scales[:, :1])


def test_products_need_trials():
    rng = np.random.default_rng(0)
    products = np.triu_indices(5)
    for n, has_products in ((29, False), (30, True)):
        units = rng.normal(size=(n, 5))
        fit = module._fit(units, products, [], (units[:, 0] * units[:, 1])[:, None])
        # Of 20 coefficients, 10 are those of products of two parameters.
        assert (len(fit.used) == 20) == has_products


def test_one_seed_gives_one_search_and_constraints_have_no_quadratic():
    assert told(0.5, 25)[1] == told(0.5, 25)[1] != told(0.5, 25, seed=1)[1]
    constrained = told(0.0, 20, constraints=["x"])[1]
    assert told(1.0, 20, constraints=["x"])[1] == constrained


def test_saved_with_its_share(tmp_path):
    optimizer, _ = told(0.5, 20)
    optimizer.save(tmp_path / "optimizer.npz")
    loaded = MondrianOptimizer.load(tmp_path / "optimizer.npz")
    assert [loaded.ask() for _ in range(6)] == [optimizer.ask() for _ in range(6)]


def test_shares_lie_between_nothing_and_everything():
    for share in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match=r"`quadratic` of an arm must be in \[0, 1\]"):
            told(share, 0)
    for after in (-1, 0.5, True):
        with pytest.raises((TypeError, ValueError), match="`quadratic_after` must be "):
            told(0.5, 0, after=after)
    for share in (0.0, -0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match=r"`candidates` of an arm must be in \(0, 1\]"):
            Arm((UpperConfidenceBound(),), candidates=share)


def test_left_out_ranks_decide():
    """What is compared with the threshold is Spearman's correlation."""
    rng = np.random.default_rng(4)
    one, other = rng.normal(size=25), rng.normal(size=25).round()
    expected = spearmanr(one, other).statistic
    assert correlation_of(ranks_of(one), ranks_of(other)) == pytest.approx(expected)

"""Densities against Beta-binomial arithmetic, numerical integrals and refitting."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare, expon, ks_1samp, poisson

from mondrian_bo.surrogates import MondrianDensityClassifier, MondrianForestDensity
from mondrian_bo.surrogates.density import model as model_module
from mondrian_bo.surrogates.density.cells import fill_cells, grow_partitions
from mondrian_bo.surrogates.density.model import DensityModel
from mondrian_bo.trees.random import make_streams
from mondrian_bo.trees.tree import view_of

SIGNIFICANCE = 1e-4


def make_model(points, lifetime, *, n_trees=3, seed=0, box=None, concentration=0.7, **options):
    points = np.asarray(points, dtype=float)
    box = np.array([[0.0] * points.shape[1], [1.0] * points.shape[1]]) if box is None else box
    streams = make_streams(np.random.SeedSequence(seed), n_trees)
    return DensityModel(streams, points, np.asarray(box), lifetime, concentration, **options)


def slow_density(model, t, x, points, lifetime=math.inf):
    """Expected density at x: a product of posterior means of Betas, over the volume of the leaf."""
    trees, node, depth, mass = model.trees, 0, 0, 1.0
    members = np.asarray(points)
    box = model.box.copy()
    while trees.children[t, node, 0] >= 0 and trees.split_time[t, node] <= lifetime:
        d, place = trees.dimension[t, node], trees.threshold[t, node]
        volumes = np.array([place - box[0, d], box[1, d] - place])
        goes_left = members[:, d] <= place
        counts = np.array([goes_left.sum(), (~goes_left).sum()])
        prior = model.concentration * volumes / volumes.sum() * (depth + 1) ** 2
        side = 0 if x[d] <= place else 1
        # Proposition C.2 for the posterior, Beta(prior + counts).
        mass *= (prior[side] + counts[side]) / (prior + counts).sum()
        members = members[goes_left] if side == 0 else members[~goes_left]
        box[1 - side, d] = place
        node, depth = trees.children[t, node, side], depth + 1
    return mass / np.prod(box[1] - box[0])


CASES = {
    "seed": st.integers(0, 2**32 - 1),
    "n": st.integers(1, 30),
    "d": st.integers(1, 3),
    "lifetime": st.sampled_from([0.0, 1.0, 5.0]),
    "concentration": st.sampled_from([0.01, 1.0, 30.0]),
    "rounded": st.booleans(),
}


def draw_points(seed, n, d, rounded):
    points = np.random.default_rng(seed).random((n, d))
    return points.round(1) if rounded else points


@given(**CASES)
@settings(max_examples=40)
def test_posterior_means_are_beta_binomial(seed, n, d, lifetime, concentration, rounded):
    points = draw_points(seed, n, d, rounded)
    box = np.array([[-1.0] * d, [2.0] * d])
    model = make_model(points, lifetime, seed=seed, box=box, concentration=concentration)
    new = np.random.default_rng(seed + 1).uniform(-1.0, 2.0, (8, d))
    for x, found in zip(new, np.exp(model.log_density(new)), strict=True):
        expected = np.mean([slow_density(model, t, x, points) for t in range(3)])
        assert np.isclose(found, expected, rtol=1e-10)
    left_out = np.exp(model.log_density(points, which=1))
    for i, found in enumerate(left_out):
        others = np.delete(points, i, axis=0)
        expected = np.mean([slow_density(model, t, points[i], others) for t in range(3)])
        assert np.isclose(found, expected, rtol=1e-10)


@given(**CASES)
@settings(max_examples=30)
def test_masses_add_up_and_empty_cells_do_not_matter(seed, n, d, lifetime, concentration, rounded):
    points = draw_points(seed, n, d, rounded)
    options = {"seed": seed, "concentration": concentration}
    model = make_model(points, min(lifetime, 3.0), **options)
    complete = make_model(points, min(lifetime, 3.0), min_size=0, **options)
    new = np.random.default_rng(seed).random((50, d))
    assert np.allclose(model.log_density(new), complete.log_density(new), rtol=0, atol=1e-9)
    for t in range(3):
        assert np.isclose(model.masses(t)[1].sum(), 1.0, atol=1e-12)
        assert np.isclose(complete.masses(t)[1].sum(), 1.0, atol=1e-12)
        assert len(complete.masses(t)[0]) >= len(model.masses(t)[0])


@pytest.mark.parametrize("seed", [0, 1])
def test_it_integrates_to_one_numerically(seed):
    rng = np.random.default_rng(seed)
    line = MondrianForestDensity(10, random_state=seed).fit(rng.normal(size=(50, 1)))
    low, high = line.bounds_[0]
    middles = low + (high - low) * (np.arange(200_000) + 0.5) / 200_000
    density = np.exp(line.score_samples(middles[:, None]))
    assert np.isclose(density.mean() * (high - low), 1.0, atol=1e-4)
    plane = MondrianForestDensity(5, lifetime=5.0, random_state=seed).fit(rng.normal(size=(50, 2)))
    cells = (np.arange(500) + 0.5) / 500
    grid = np.stack(np.meshgrid(cells, cells), axis=-1).reshape(-1, 2)
    low, extent = plane.bounds_[:, 0], np.diff(plane.bounds_)[:, 0]
    density = np.exp(plane.score_samples(low + extent * grid))
    assert np.isclose(density.mean() * np.prod(extent), 1.0, atol=5e-3)
    assert np.array_equal(plane.score_samples([low - 1e-9, low + extent + 1e-9]), [-np.inf] * 2)


def test_no_cuts_is_uniform_and_many_cuts_find_the_data():
    X = np.random.default_rng(0).normal(size=(100, 2))
    uniform = MondrianForestDensity(lifetime=0.0).fit(X)
    assert np.allclose(uniform.score_samples(X), -np.log(np.prod(np.diff(uniform.bounds_))))
    path = MondrianForestDensity(20, random_state=0).lifetime_path(X)
    assert path.training[0] == path.leave_one_out[0]
    assert path.training[-1] > path.training[0] + 0.5
    assert path.leave_one_out.max() > path.leave_one_out[0] + 0.3


# Partitions ---------------------------------------------------------------------------------------


def partitions(n_trees, d, lifetime, seed=0, points=None):
    points = np.empty((0, d)) if points is None else points
    box = np.array([np.zeros(d), np.full(d, 2.0)])
    streams = make_streams(np.random.SeedSequence(seed), n_trees)
    return grow_partitions(streams, points, box, lifetime, min_size=0)


def test_cuts_of_a_line_are_a_poisson_process():
    trees = partitions(4000, 1, 3.0).trees
    cuts = [trees.threshold[t][trees.children[t, :, 0] > 0] for t in range(4000)]
    numbers = np.bincount([len(places) for places in cuts], minlength=12)
    expected = 4000 * poisson(3.0).pmf(np.arange(12))
    numbers[9], expected[9] = numbers[9:].sum(), 4000 - expected[:9].sum()
    assert chisquare(numbers[:10], expected[:10]).pvalue > SIGNIFICANCE
    places = np.concatenate(cuts) / 2.0
    assert ks_1samp(places, lambda x: x).pvalue > SIGNIFICANCE
    # In units of the box as 1, gaps from the left end are exponential, cut off at the right end.
    first = np.array([min(own, default=2.0) / 2.0 for own in cuts])
    below = first[first < 1.0]
    whole = expon(scale=1.0 / 3.0)
    assert ks_1samp(below, lambda x: whole.cdf(x) / whole.cdf(1.0)).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("d", [2, 3])
def test_numbers_of_cells(d):
    lifetime, n_trees = 2.0, 4000
    trees = partitions(n_trees, d, lifetime).trees
    n_cells = (trees.counters[:, 0] + 1) / 2
    error = n_cells.std() / np.sqrt(n_trees)
    assert abs(n_cells.mean() - (1.0 + lifetime) ** d) < 4.5 * error
    dimensions = trees.dimension[:, 0][trees.children[:, 0, 0] > 0]
    assert chisquare(np.bincount(dimensions)).pvalue > SIGNIFICANCE
    whole = np.mean(trees.children[:, 0, 0] < 0)
    assert binomtest(round(whole * n_trees), n_trees, np.exp(-lifetime * d)).pvalue > SIGNIFICANCE


def test_siblings_are_independent():
    # Were streams of siblings related, their times would be.
    trees, fractions, _ = partitions(3000, 2, 6.0, seed=3)
    rows = np.flatnonzero(trees.children[:, 0, 0] > 0)
    left, right = trees.children[rows, 0].T
    both = (trees.children[rows, left, 0] > 0) & (trees.children[rows, right, 0] > 0)
    rows, left, right = rows[both], left[both], right[both]
    shares = [fractions[rows, trees.children[rows, node, 0]] for node in (left, right)]
    assert abs(np.corrcoef(*shares)[0, 1]) < 4.5 / np.sqrt(len(rows))


def test_trees_depend_on_neither_data_nor_lifetime():
    points = np.random.default_rng(0).random((40, 2))
    new = np.random.default_rng(1).random((200, 2))
    large = make_model(points, 12.0, seed=5)
    small = make_model(points, 4.0, seed=5)
    fewer = make_model(points[:7], 12.0, seed=5)
    for x in new:
        for t in range(3):
            pruned = slow_density(large, t, x, points, lifetime=4.0)
            assert np.isclose(pruned, slow_density(small, t, x, points), rtol=1e-12)
            other = slow_density(large, t, x, points[:7])
            assert np.isclose(other, slow_density(fewer, t, x, points[:7]), rtol=1e-10)


# Paths --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_path_equals_refitting(seed):
    rng = np.random.default_rng(seed)
    X, X_val = rng.normal(size=(25, 2)), rng.uniform(-1.0, 1.0, size=(10, 2))
    X = np.vstack([X, X[:3]])
    options = {"n_estimators": 4, "random_state": seed, "concentration": 0.05}
    path = MondrianForestDensity(lifetime=30.0, **options).lifetime_path(X, X_val=X_val)
    assert path.lifetimes[0] == 0.0 == path.index(0.0)
    assert path.max_lifetime == 30.0
    check_path(path, X, X_val, options)


def check_path(path, X, X_val, options, n_checked=60):
    """Compare likelihoods at some lifetimes with those of estimators that are fitted there."""
    assert np.all(np.diff(path.lifetimes) >= 0.0)
    ends = np.append(path.lifetimes[1:], path.max_lifetime)
    for i in np.unique(np.linspace(0, len(path) - 1, n_checked).astype(int)):
        lifetime = 0.5 * (path.lifetimes[i] + ends[i])
        assert path.index(lifetime) == i
        fitted = MondrianForestDensity(lifetime=lifetime, **options).fit(X)
        assert np.isclose(path.training[i], fitted.score(X), rtol=1e-12, atol=1e-9)
        assert np.isclose(path.validation[i], fitted.score(X_val), rtol=1e-12, atol=1e-9)
        left_out = fitted.leave_one_out().mean()
        assert np.isclose(path.leave_one_out[i], left_out, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "concentration", "lifetime"),
    [
        ("plane", 1e-300, 30.0),  # densities of points that are left out fall by 1e-300
        ("plane", 1e-60, 30.0),  # and by 1e-60, beyond the digits of a compensated sum
        ("plane", 1e-323, 30.0),  # and to 0
        ("binary", 1e-6, 20.0),  # many equal points in many dimensions: densities above e^709
        ("duplicates", 1e-6, 200.0),
    ],
)
def test_paths_of_extreme_densities(kind, concentration, lifetime):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 2))
    if kind == "binary":
        X = np.zeros((200, 300))
        X[:, 0] = np.arange(200) % 2
    elif kind == "duplicates":
        X = np.repeat(X[:4], [1, 2, 30, 300], axis=0)
    X_val = X[:10] + 0.01
    options = {"n_estimators": 4, "random_state": 0, "concentration": concentration}
    model = MondrianForestDensity(lifetime=lifetime, **options)
    path = model.lifetime_path(X, X_val=X_val)
    assert not np.isnan([path.training, path.validation, path.leave_one_out]).any()
    check_path(path, X, X_val, options, 20)
    if kind == "binary":
        assert path.training[-1] > 709.0
    chosen = path.best_lifetime()
    assert path.leave_one_out[path.index(chosen)] == path.leave_one_out.max()
    with pytest.raises(ValueError, match="without validation points"):
        model.lifetime_path(X).best_lifetime("validation")


@pytest.mark.parametrize("concentration", [1e-300, 1e-60])
def test_automatic_lifetimes_with_a_tiny_concentration(concentration):
    X = np.random.default_rng(0).normal(size=(60, 2))
    options = {"n_estimators": 5, "concentration": concentration, "random_state": 0}
    density = MondrianForestDensity(**options).fit(X)
    best = density.leave_one_out().mean()
    for factor in (0.0, 0.5, 0.8, 1.2, 2.0):
        other = MondrianForestDensity(lifetime=factor * density.lifetime_, **options).fit(X)
        assert other.leave_one_out().mean() <= best + 1e-9
    classifier = MondrianDensityClassifier(**options).fit(X, X[:, 0] > 0)
    assert np.isfinite(classifier.predict_proba(X)).all()


def test_leave_one_out_is_refitting_without_the_point():
    X = np.random.default_rng(0).random((15, 2))
    options = {"n_estimators": 5, "lifetime": 8.0, "bounds": [[0, 1]] * 2, "random_state": 0}
    found = MondrianForestDensity(**options).fit(X).leave_one_out()
    for i in range(15):
        others = MondrianForestDensity(**options).fit(np.delete(X, i, axis=0))
        assert np.isclose(found[i], others.score_samples(X[i : i + 1])[0], rtol=0, atol=1e-10)


def test_leave_one_out_with_a_small_concentration():
    X = np.array([[-1.0], [0.3], [2.0]])
    options = {"n_estimators": 1, "lifetime": 10.0, "bounds": [[-5, 5]], "random_state": 0}
    model = MondrianForestDensity(concentration=1e-14, **options)
    found = model.fit(X).leave_one_out()
    for i in range(3):
        others = model.fit(np.delete(X, i, axis=0))
        assert np.isclose(found[i], others.score_samples(X[i : i + 1])[0], rtol=1e-9)
    smallest = MondrianForestDensity(concentration=1e-18, **options).fit(X)
    assert np.all(np.isfinite(smallest.leave_one_out()))


@given(**CASES)
@settings(max_examples=40)
def test_small_trees_have_all_leave_one_out_densities(seed, n, d, lifetime, concentration, rounded):
    points = draw_points(seed, n, d, rounded)
    options = {"seed": seed, "concentration": concentration}
    whole = make_model(points, lifetime, **options)
    small = make_model(points, lifetime, min_size=2, **options)
    assert np.array_equal(small.log_density(points, which=1), whole.log_density(points, which=1))
    path = whole.path(None)
    best = path.lifetimes[np.argmax(path.leave_one_out)]
    assert small.best_leave_one_out() == whole.best_leave_one_out() == best
    # The first split after the lifetime is that of longer trees.
    longer = make_model(points, lifetime + 3.0, **options).path(None).lifetimes
    later = longer[longer >= max(lifetime, 1e-300)]
    if len(later) > 0:
        assert whole.next_split == later[0]
    else:
        assert whole.next_split >= lifetime + 3.0


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("n_trees", [1, 10])
@pytest.mark.parametrize(("n", "d"), [(1, 2), (20, 1), (100, 2), (100, 8), (40, 20)])
def test_automatic_lifetimes_are_those_of_whole_trees(n, d, n_trees, seed):
    X = np.random.default_rng(seed).normal(size=(n, d))
    X = np.vstack([X, X[:2]]) if seed == 1 and d == 2 else X
    options = {"n_estimators": n_trees, "random_state": seed}
    lifetime = 16.0
    while True:
        path = MondrianForestDensity(lifetime=lifetime, **options).lifetime_path(X)
        if path.best_lifetime() <= 0.5 * lifetime or lifetime == 1024.0:
            break
        lifetime *= 4.0
    found = MondrianForestDensity(**options)
    assert found.fit(X).lifetime_ == path.best_lifetime() == found.model_.lifetime
    plain = MondrianForestDensity(lifetime=found.lifetime_, **options).fit(X)
    assert np.array_equal(found.score_samples(X), plain.score_samples(X))
    assert np.array_equal(found.sample(9, random_state=0), plain.sample(9, random_state=0))
    whole = found.lifetime_path(X)
    assert whole.max_lifetime == lifetime
    assert np.array_equal(whole.leave_one_out, path.leave_one_out)


def test_an_automatic_lifetime_grows_few_cells(monkeypatch):
    n_nodes = []

    def counted(*args, **options):
        grown = grow_partitions(*args, **options)
        n_nodes.append(int(grown.trees.counters[:, 0].sum()))
        assert grown.trees.box.size == 0
        return grown

    monkeypatch.setattr(model_module, "grow_partitions", counted)
    X = np.random.default_rng(0).normal(size=(100, 64))
    fitted = MondrianForestDensity(2, random_state=0).fit(X)
    assert fitted.lifetime_ < 2.0
    assert max(n_nodes) <= 2 * fitted.model_.trees.counters[:, 0].sum()


def test_cells_of_nodes_are_made_from_their_splits():
    points = np.random.default_rng(0).random((30, 3))
    model = make_model(points, 6.0, box=np.array([[-1.0] * 3, [2.0] * 3]))
    for t in range(3):
        tree, (leaves, masses) = view_of(model.trees, t), model.masses(t)
        cells = np.tile(model.box, (len(leaves), 1, 1))
        fill_cells(tree, leaves, cells)
        assert np.isclose(np.prod(cells[:, 1] - cells[:, 0], axis=1).sum(), 27.0)
        for leaf, (low, high), mass in zip(leaves, cells, masses, strict=True):
            inside = np.all((points > low) & (points <= high), axis=1)
            assert inside.sum() == tree.size[leaf]
            middle = 0.5 * (low + high)
            assert np.all(model.leaves(middle[None])[:, t] == leaf)
            density = slow_density(model, t, middle, points)
            assert np.isclose(mass, density * np.prod(high - low), rtol=1e-10)


def test_best_lifetimes():
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(100, 1)), rng.normal(size=(50, 1)).clip(-1.5, 1.5)
    model = MondrianForestDensity(20, random_state=0)
    path = model.lifetime_path(X, X_val=X_val)
    fitted = model.fit(X)
    assert fitted.lifetime_ == path.best_lifetime()
    assert np.isclose(fitted.leave_one_out().mean(), path.leave_one_out.max(), atol=1e-9)
    best = MondrianForestDensity(20, lifetime=path.best_lifetime("validation"), random_state=0)
    assert np.isclose(best.fit(X).score(X_val), path.validation.max(), atol=1e-9)
    outside = model.lifetime_path(X, X_val=[[100.0]])
    assert np.all(outside.validation == -np.inf)
    with pytest.raises(ValueError, match="without validation points"):
        model.lifetime_path(X).best_lifetime("validation")
    with pytest.raises(ValueError, match="criterion must be"):
        path.best_lifetime("training")
    with pytest.raises(ValueError, match=r"lifetime must be in \[0, "):
        path.index(1e9)


# Samples ------------------------------------------------------------------------------------------


def test_samples_have_the_density():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = MondrianForestDensity(3, lifetime=3.0, random_state=0).fit(X)
    drawn = model.sample(20_000, random_state=1)
    assert drawn.shape == (20_000, 2)
    assert np.all(np.isfinite(model.score_samples(drawn)))
    low, extent = model.bounds_[:, 0], np.diff(model.bounds_)[:, 0]
    counts = np.histogram2d(*((drawn - low) / extent).T, bins=6, range=[[0, 1]] * 2)[0]
    fine = (np.arange(300) + 0.5) / 300
    grid = np.stack(np.meshgrid(fine, fine, indexing="ij"), axis=-1).reshape(-1, 2)
    density = np.exp(model.score_samples(low + extent * grid)).reshape(6, 50, 6, 50)
    expected = density.mean(axis=(1, 3)).ravel()
    # The grid's error is far below the noise of the counts.
    assert chisquare(counts.ravel(), 20_000 * expected / expected.sum()).pvalue > SIGNIFICANCE
    assert np.array_equal(model.sample(5, random_state=3), model.sample(5, random_state=3))


# Input --------------------------------------------------------------------------------------------


def test_box():
    X = np.array([[0.0, 5.0], [2.0, 5.0]])
    model = MondrianForestDensity(2, margin=0.25).fit(X)
    assert np.allclose(model.bounds_, [[-0.5, 2.5], [4.5, 5.5]])
    given = MondrianForestDensity(2, bounds=[[0, 2], [5, 9]]).fit(X)
    assert np.array_equal(given.bounds_, [[0, 2], [5, 9]])
    with pytest.raises(ValueError, match="X has values outside of bounds"):
        MondrianForestDensity(2, bounds=[[0, 1], [5, 9]]).fit(X)
    with pytest.raises(ValueError, match="lower < upper"):
        MondrianForestDensity(2, bounds=[[1, 1], [5, 9]]).fit(X)
    far = MondrianForestDensity(2).fit(np.full((3, 1), 1e20))
    assert np.isfinite(far.score([[1e20]]))


@pytest.mark.filterwarnings("error")
def test_ranges_below_the_normal_numbers_do_not_vary():
    X = np.random.default_rng(0).random((40, 2))
    tiny, constant = X * [1.0, 1e-320], X * [1.0, 0.0]
    found = MondrianForestDensity(5, random_state=0).fit(tiny)
    expected = MondrianForestDensity(5, random_state=0).fit(constant)
    assert np.allclose(found.bounds_, expected.bounds_)
    assert found.lifetime_ == expected.lifetime_
    assert np.allclose(found.score_samples(tiny), expected.score_samples(constant), rtol=1e-12)
    bounds = [[0.0, 1.0], [0.0, 1e-320]]
    narrow = MondrianForestDensity(5, bounds=bounds, random_state=0).fit(tiny)
    assert not np.any(narrow.model_.trees.dimension == 1)
    assert np.isfinite(narrow.score_samples(tiny)).all()


def test_a_path_leaves_the_estimator_as_it_was():
    X = np.random.default_rng(0).random((30, 3))
    model = MondrianForestDensity(2, lifetime=3.0, random_state=0).fit(X)
    before = model.score_samples(X)
    model.lifetime_path(X[:, :2], X_val=X[:5, :2])
    assert model.n_features_in_ == 3
    assert np.array_equal(model.score_samples(X), before)
    new = MondrianForestDensity(2, lifetime=3.0)
    new.lifetime_path(X)
    assert not hasattr(new, "n_features_in_")


def test_numbers_of_draws():
    model = MondrianForestDensity(2, random_state=0).fit(np.eye(2))
    assert model.sample(0).shape == (0, 2)
    with pytest.raises(ValueError, match="n_samples == -1, must be >= 0"):
        model.sample(-1)
    with pytest.raises(TypeError, match="n_samples must be an instance of"):
        model.sample(1.5)


def test_duplicates_and_one_sample():
    for X in (np.zeros((50, 2)), np.zeros((1, 2))):
        model = MondrianForestDensity(5, lifetime=1000.0, random_state=0).fit(X)
        assert np.all(np.isfinite(model.score_samples(X)))
        assert np.all(np.isfinite(model.leave_one_out()))
        assert np.isclose(model.model_.masses(0)[1].sum(), 1.0)
    alone = MondrianForestDensity(5, lifetime=3.0).fit(np.zeros((1, 2)))
    assert np.allclose(alone.leave_one_out(), -alone.model_.log_volume)

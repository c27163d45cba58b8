"""Trees with a limit of nodes: full trees extend nodes or, in AMF, remove leaves for new splits."""

import pickle

import numpy as np
import pytest
from trees.oracles import assert_same_bits

from mondrian_bo.surrogates import (
    AMFClassifier,
    AMFRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
)
from mondrian_bo.trees.aggregation_nodes import (
    MASS,
    MEAN,
    Aggregation,
    Samples,
    refresh_averaged_weights,
    relearn_forest,
)
from mondrian_bo.trees.layout import FIRST_POINT, LEFT, N_NODES, NONE, RIGHT, ROOT
from mondrian_bo.trees.tree import view_of

BOX = [[-4.0, 4.0]] * 2
KINDS = {
    "AMFRegressor": lambda **options: AMFRegressor(3, random_state=0, **options),
    "AMFRegressor, plain": lambda **options: AMFRegressor(
        3, stacking=False, random_state=0, **options
    ),
    "AMFClassifier": lambda **options: AMFClassifier(3, random_state=0, **options),
    "AMFClassifier, pure": lambda **options: AMFClassifier(
        3, split_pure=True, random_state=0, **options
    ),
    "forest": lambda **options: MondrianForestRegressor(
        3, hyperparameters="paper", bounds=BOX, random_state=0, **options
    ),
    "forest, blocks": lambda **options: MondrianForestRegressor(
        3, min_samples_split=5, hyperparameters="paper", random_state=0, **options
    ),
    "forest, linear": lambda **options: MondrianForestRegressor(
        2, leaf="linear", hyperparameters="paper", bounds=BOX, random_state=0, **options
    ),
    "MondrianForestClassifier": lambda **options: MondrianForestClassifier(
        3, random_state=0, **options
    ),
}


def make_data(name, n=300, seed=0):
    """Points in a growing range, so that boxes of full trees have to be extended."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).clip(-3.9, 3.9) * np.linspace(0.3, 1.0, n)[:, None]
    X[1::7] = X[::7][: len(X[1::7])]  # duplicates need no nodes
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n)
    return X, (y > 0.0).astype(int) if "Classifier" in name else y


def first(name):
    return {"classes": [0, 1]} if "Classifier" in name else {}


def forest_of(model):
    return model.model_.forest if hasattr(model, "model_") else model.forest_


def predictions(model, X):
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


def used(forest):
    """The arrays of the trees, without capacity: sizes and numbers of nodes, statistics."""
    found = {}
    for t, n in enumerate(forest.arrays.counters[:, N_NODES]):
        for name in ("parent", "children", "threshold", "split_time", "size"):
            found[f"{name} {t}"] = getattr(forest.arrays, name)[t, :n]
        for name, field in forest.node_stats._asdict().items():
            found[f"{name} {t}"] = field[t, :n]
    return found


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("max_nodes", [1, 2, 7, 40])
def test_full_trees_hold_all_points(name, max_nodes):
    X, y = make_data(name)
    model = KINDS[name](max_nodes=max_nodes).partial_fit(X[:30], y[:30], **first(name))
    model.partial_fit(X[30:31], y[30:31]).partial_fit(X[31:], y[31:])
    forest = forest_of(model)
    assert forest.arrays.counters[:, N_NODES].max() <= max_nodes
    assert forest.arrays.counters[:, N_NODES].min() >= max_nodes - 1 or "Classifier" in name
    points = X.astype(forest.points.dtype)
    for t in range(forest.n_trees):
        tree = view_of(forest.arrays, t)
        held = {int(tree.counters[ROOT]): np.arange(len(X))}
        while held:
            node, members = held.popitem()
            assert tree.size[node] == len(members) > 0
            lower, upper = points[members].min(axis=0), points[members].max(axis=0)
            if tree.row[node] != NONE:
                assert np.array_equal(tree.box[tree.row[node]], [lower, upper])
            elif "pure" not in name and "Classifier" not in name:
                assert np.array_equal(lower, upper)
                assert np.array_equal(tree.points[tree.children[node, FIRST_POINT]], lower)
            if tree.children[node, LEFT] != NONE:
                left = points[members, tree.dimension[node]] <= tree.threshold[node]
                held[int(tree.children[node, LEFT])] = members[left]
                held[int(tree.children[node, RIGHT])] = members[~left]
            check_leaf(name, forest, t, node, y[members], tree.children[node, LEFT] == NONE)


def check_leaf(name, forest, t, node, targets, is_leaf):
    """Every leaf knows all targets of its points, and in AMF every node."""
    stats = forest.node_stats
    if name == "MondrianForestClassifier" and is_leaf:
        assert np.array_equal(stats.counts[t, node], np.bincount(targets, minlength=2))
    elif name.startswith("AMFRegressor"):
        assert stats.statistics[t, node, MASS] == len(targets)
        assert stats.statistics[t, node, MEAN] == pytest.approx(targets.mean(), abs=1e-9)
    elif name.startswith("AMFClassifier"):
        assert np.array_equal(stats.statistics[t, node], np.bincount(targets, minlength=2))
    elif name == "forest":
        assert stats.moments[t, node, 0] == pytest.approx(targets.mean(), abs=1e-9)
        squares = np.sum((targets - targets.mean()) ** 2)
        assert stats.moments[t, node, 1] == pytest.approx(squares, abs=1e-9)


@pytest.mark.parametrize("name", KINDS)
def test_the_limit_changes_nothing_before_it_is_reached(name):
    X, y = make_data(name, 60)
    free = KINDS[name]().partial_fit(X[:20], y[:20], **first(name)).partial_fit(X[20:], y[20:])
    most = int(forest_of(free).arrays.counters[:, N_NODES].max())
    wide = KINDS[name](max_nodes=2 * len(X))
    wide.partial_fit(X[:20], y[:20], **first(name)).partial_fit(X[20:], y[20:])
    assert_same_bits(used(forest_of(wide)), used(forest_of(free)))
    assert np.array_equal(predictions(wide, X + 0.1), predictions(free, X + 0.1))
    tight = KINDS[name](max_nodes=most - 2)
    tight.partial_fit(X[:20], y[:20], **first(name)).partial_fit(X[20:], y[20:])
    assert not np.array_equal(predictions(tight, X + 0.1), predictions(free, X + 0.1))


@pytest.mark.parametrize("name", [name for name in KINDS if name.startswith("AMF")])
def test_divisions_of_a_stream_do_not_matter(name):
    X, y = make_data(name, 600)  # nodes are renumbered after 512 samples
    one = KINDS[name](max_nodes=25).partial_fit(X, y, **first(name))
    several = KINDS[name](max_nodes=25, n_jobs=2)
    for start, end in ((0, 3), (3, 4), (4, 90), (90, 91), (91, 520), (520, 600)):
        several.partial_fit(X[start:end], y[start:end], **first(name))
    several.set_params(n_jobs=1)
    assert_same_bits(used(forest_of(one)), used(forest_of(several)))
    assert np.array_equal(predictions(one, X + 0.1), predictions(several, X + 0.1))
    assert one.model_.n_points == several.model_.n_points == 600


@pytest.mark.parametrize("name", [name for name in KINDS if name.startswith("AMF")])
@pytest.mark.parametrize("max_nodes", [5, 60])
def test_states_of_full_trees_are_those_of_learning_anew(name, max_nodes):
    X, y = make_data(name)
    model = KINDS[name](max_nodes=max_nodes)
    for start in range(0, len(X), 20):
        model.partial_fit(X[start : start + 20], y[start : start + 20], **first(name))
    forest = forest_of(model)
    # All points go down the trees as they are now; each node learns those of its block, in order.
    trees = forest.arrays._replace(points=X.astype(np.float32)[None])
    states = Aggregation(*(np.full_like(field, np.nan) for field in forest.node_stats))
    none = np.empty((forest.n_trees, 0))
    samples = Samples(y.astype(forest.targets.dtype), np.empty(0), np.empty(0, dtype=np.int32))
    relearn_forest(trees, states, none, samples, forest.settings)
    refresh_averaged_weights(trees, states, none, forest.settings.step)
    assert not forest.links_all_points
    for t, n_nodes in enumerate(forest.arrays.counters[:, N_NODES]):
        for found, expected in zip(forest.node_stats, states, strict=True):
            assert np.array_equal(found[t, :n_nodes], expected[t, :n_nodes])


@pytest.mark.parametrize("name", [name for name in KINDS if name.startswith("AMF")])
def test_leaves_of_full_trees_follow_the_inputs(name):
    rng = np.random.default_rng(1)
    X = rng.random((1200, 2)) + np.linspace(0.0, 6.0, 1200)[:, None]
    y = np.sin(6.0 * X[:, 0]) + 0.1 * rng.normal(size=len(X))
    y = (y > 0.0).astype(int) if "Classifier" in name else y
    model = KINDS[name](max_nodes=41).partial_fit(X[:600], y[:600], **first(name))
    last = X[None, 1000:].astype(np.float32)
    before = max(len(np.unique(leaves)) for leaves in model.model_.forest.leaves(last).T)
    model.partial_fit(X[600:], y[600:])
    after = [len(np.unique(leaves)) for leaves in model.model_.forest.leaves(last).T]
    # Trees have 21 leaves at most. The least number of several trees depends on the seed.
    assert before <= 3
    assert np.mean(after) >= 6


@pytest.mark.parametrize("name", KINDS)
def test_a_copy_goes_on_learning(name):
    X, y = make_data(name)
    model = KINDS[name](max_nodes=15).partial_fit(X[:200], y[:200], **first(name))
    replica = pickle.loads(pickle.dumps(model))
    for each in (model, replica):
        each.partial_fit(X[200:], y[200:])
    assert np.array_equal(predictions(model, X), predictions(replica, X))
    assert np.all(np.isfinite(predictions(model, X)))


@pytest.mark.parametrize("name", ["AMFRegressor", "AMFClassifier, pure"])
def test_memory_is_bounded(name):
    rng = np.random.default_rng(0)
    model, sizes = KINDS[name](max_nodes=50), []
    for _ in range(6):
        X = rng.random((1500, 2))
        y = (X[:, 0] + 0.1 * rng.normal(size=1500) > 0.5).astype(int)
        # The forecasts of the last batch are kept.
        model.partial_fit(X, y, **first(name)).partial_fit(X[:1], y[:1])
        sizes.append(len(pickle.dumps(model)))
    assert len(set(sizes[1:])) == 1
    assert forest_of(model).n_points <= 200
    assert model.model_.n_points == 6 * 1501


def test_weights_need_all_samples():
    X, y = make_data("AMFRegressor")
    model = KINDS["AMFRegressor"](max_nodes=19).fit(X[:10], y[:10])
    np.testing.assert_allclose(model.weights(X) @ y[:10], model.predict(X), rtol=1e-9)
    with pytest.raises(ValueError, match="max_nodes=19 are full"):
        model.partial_fit(X[10:], y[10:]).weights(X)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("wrong", [0, -3, 2.5, "many"])
def test_wrong_limits(name, wrong):
    X, y = make_data(name, 10)
    with pytest.raises(ValueError, match="max_nodes"):
        KINDS[name](max_nodes=wrong).fit(X, y)


@pytest.mark.parametrize("other", [{"bounds": BOX}, {"record_losses": True}])
def test_what_has_no_limit(other):
    X, y = make_data("AMFRegressor", 10)
    for kind in (AMFRegressor, AMFClassifier):
        with pytest.raises(ValueError, match="max_nodes needs"):
            kind(max_nodes=5, **other).fit(X, (y > 0).astype(int))

import numpy as np
import pytest

from mondrian_bo.surrogates import (
    AMFClassifier,
    MondrianForestClassifier,
    MondrianKernelClassifier,
    OnlineDummyClassifier,
)
from mondrian_bo.surrogates.estimators.online_classifier import class_numbers


def test_labels_of_large_batches():
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b", "d"])
    numbers = rng.integers(3, size=10_000)
    assert np.array_equal(class_numbers(classes[numbers], classes), numbers)
    assert class_numbers([], classes).shape == (0,)
    with pytest.raises(ValueError, match=r"\['c'\]"):
        class_numbers([*classes[numbers], "c"], classes)


@pytest.mark.parametrize(
    "model",
    [
        AMFClassifier(2),
        MondrianForestClassifier(2),
        MondrianKernelClassifier(n_estimators=2),
        OnlineDummyClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_no_classes(model):
    X, y = np.eye(2), ["a", "b"]
    with pytest.raises(ValueError, match=r"classes must hold all labels of the stream, got \[\]"):
        model.partial_fit(X, y, classes=[])
    model.partial_fit(X, y, classes=["a", "b"])
    with pytest.raises(ValueError, match=r"classes=\[\] are not those of the first call"):
        model.partial_fit(X, y, classes=[])


@pytest.mark.parametrize("known", [np.uint64, np.int64, np.float64])
@pytest.mark.parametrize("given", [np.uint64, np.int64, np.float64, object])
def test_large_numbers_as_labels(known, given):
    step = 2**10 if np.float64 in (known, given) else 1
    labels = [3, 2**60, 2**60 + step]
    numbers = class_numbers(np.array(labels, dtype=given), np.array(labels, dtype=known))
    assert numbers.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("given", "known"), [(np.int64, np.uint64), (np.uint64, np.int64), (np.int64, np.float64)]
)
def test_large_unknown_numbers_are_no_labels(given, known):
    with pytest.raises(ValueError, match=rf"not among the classes .*: \[{2**60 + 1}\]"):
        class_numbers(np.array([2**60 + 1], dtype=given), np.array([0, 2**60], dtype=known))


@pytest.mark.parametrize(
    "model",
    [AMFClassifier(2), MondrianForestClassifier(2), MondrianKernelClassifier(n_estimators=2)],
    ids=lambda model: type(model).__name__,
)
def test_large_numbers_of_another_type_may_be_learnt(model):
    X, y = np.eye(2), np.array([2**60, 2**60 + 1])
    model.partial_fit(X, y.astype(np.uint64)).partial_fit(X, y, classes=y)
    assert model.classes_.tolist() == y.tolist()
    assert model.predict(X).tolist() == y.tolist()
    if isinstance(model, MondrianKernelClassifier):
        swapped = model.lifetime_path(X, y.astype(np.uint64), X, y[::-1])
        assert np.array_equal(swapped.validation_error, 1.0 - swapped.training_error)

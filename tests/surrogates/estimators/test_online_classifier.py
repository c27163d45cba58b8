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

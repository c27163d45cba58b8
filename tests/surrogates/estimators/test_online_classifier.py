import numpy as np
import pytest

from mondrian_bo.surrogates.estimators.online_classifier import class_numbers


def test_labels_of_large_batches():
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b", "d"])
    numbers = rng.integers(3, size=10_000)
    assert np.array_equal(class_numbers(classes[numbers], classes), numbers)
    assert class_numbers([], classes).shape == (0,)
    with pytest.raises(ValueError, match=r"\['c'\]"):
        class_numbers([*classes[numbers], "c"], classes)

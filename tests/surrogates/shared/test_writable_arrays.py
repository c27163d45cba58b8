"""Estimators from files that are mapped read-only learn on."""

from __future__ import annotations

import joblib
import numpy as np
import pytest

from mondrian_bo.surrogates import (
    AMFClassifier,
    AMFRegressor,
    GaussianProcessForestRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
    MondrianKernelRegressor,
)
from mondrian_bo.surrogates.shared.writable_arrays import with_writable_arrays

ESTIMATORS = [
    AMFClassifier(2, random_state=0),
    AMFRegressor(2, random_state=0),
    GaussianProcessForestRegressor(n_estimators=2, block_size=20, random_state=0),
    MondrianForestClassifier(2, random_state=0),
    MondrianForestRegressor(2, random_state=0),
    MondrianKernelRegressor(2, random_state=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_learns_on_as_if_it_had_stayed_in_memory(estimator, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 3)), rng.integers(2, size=60)
    estimator.fit(X[:40], y[:40])
    joblib.dump(estimator, tmp_path / "file")
    loaded = joblib.load(tmp_path / "file", mmap_mode="r")
    for one in (estimator, loaded):
        one.partial_fit(X[40:], y[40:])
    predicted = [getattr(one, "predict_proba", one.predict)(X) for one in (estimator, loaded)]
    np.testing.assert_array_equal(*predicted)


def test_what_is_shared_stays_shared():
    array = np.arange(3.0)
    array.flags.writeable = False
    writable = np.arange(2.0)
    node = MondrianForestRegressor()
    node.arrays = [array, (array, writable), {"x": array}]
    node.itself = node
    state = with_writable_arrays({"node": node, "again": array, "name": "forest"})
    copy = state["again"]
    assert copy.flags.writeable
    np.testing.assert_array_equal(copy, array)
    assert node.arrays[0] is copy
    assert node.arrays[1][0] is copy
    assert node.arrays[1][1] is writable
    assert node.arrays[2]["x"] is copy
    assert state["node"] is node

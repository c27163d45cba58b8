"""Workers of any backend: some give them arrays that cannot be written."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import ThreadingBackend

from mondrian_bo.surrogates import (
    AMFRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
    MondrianKernelRegressor,
)


class ReadOnly(ThreadingBackend):
    """Passes arrays in buffers that cannot be written, as Ray does."""

    supports_sharedmem = False

    def submit(self, func, callback=None):
        """Call a copy of the function with copies of its arguments."""
        buffers = []
        content = pickle.dumps(func, 5, buffer_callback=buffers.append)
        copied = pickle.loads(content, buffers=[bytes(one.raw()) for one in buffers])
        return super().submit(copied, callback)


joblib.register_parallel_backend("read-only", ReadOnly)


@pytest.mark.parametrize(
    "estimator",
    [
        MondrianForestRegressor(4, random_state=0),
        MondrianForestClassifier(4, random_state=0),
        AMFRegressor(4, random_state=0),
        MondrianKernelRegressor(4, random_state=0),
    ],
    ids=lambda one: type(one).__name__,
)
def test_workers_that_get_read_only_arrays(estimator):
    rng = np.random.default_rng(0)
    X = rng.random((300, 3))
    y = np.round(X.sum(axis=1))
    expected = estimator.fit(X, y).predict(X)
    with joblib.parallel_config("read-only", n_jobs=2):
        found = estimator.fit(X, y).predict(X)
    np.testing.assert_array_equal(found, expected)

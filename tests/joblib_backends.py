"""What holds for every backend of joblib."""

from __future__ import annotations

import joblib
import numpy as np

from mondrian_bo.surrogates import MondrianForestRegressor


def check_same_forest(backend):
    """Check that a forest whose trees grow and predict in two workers is that of one worker."""
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    y = X.sum(axis=1)
    expected = MondrianForestRegressor(4, random_state=0).fit(X, y).predict(X)
    with joblib.parallel_config(backend, n_jobs=2):
        forest = MondrianForestRegressor(4, random_state=0).fit(X, y)
        np.testing.assert_array_equal(forest.predict(X), expected)

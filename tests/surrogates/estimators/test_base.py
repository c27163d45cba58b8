"""The `fit` that all estimators share: what it checks, and what an exception leaves behind."""

import numpy as np
import pytest

from mondrian_bo.surrogates import MondrianForestDensity, OnlineDummyRegressor
from mondrian_bo.surrogates.estimators.base import SupervisedEstimator


class Interrupted(OnlineDummyRegressor):
    """Learns until a user presses a key."""

    def _learn(self, data, targets, sample_weight):
        super()._learn(data, targets, sample_weight)
        if len(targets) > 2:
            raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_interrupted_first_batch_leaves_nothing(learn):
    estimator = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        getattr(estimator, learn)(np.zeros((3, 1)), np.ones(3))
    assert vars(estimator) == {}


def test_interrupted_fit_keeps_what_was_learnt():
    estimator = Interrupted().fit(np.zeros((2, 1)), [1.0, 3.0])
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(np.zeros((3, 2)), np.ones(3))
    assert estimator.n_features_in_ == 1
    assert estimator.mean_ == 2.0


def test_parameters_are_checked_before_data():
    density = MondrianForestDensity(n_estimators=0)
    with pytest.raises(ValueError, match="n_estimators"):
        density.fit("no data")


def test_fit_is_documented_once():
    assert OnlineDummyRegressor.fit is SupervisedEstimator.fit

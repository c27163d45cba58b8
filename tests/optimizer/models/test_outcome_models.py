"""Models of several outcomes: which trials each of them knows."""

from __future__ import annotations

import numpy as np

from mondrian_bo.optimizer.models.outcome_models import OutcomeModels


class Model:
    """A model that predicts the number of its trials."""

    def __init__(self, trials, number):
        self.trials = trials

    def outcome_moments(self, rows):
        return np.full((2, len(rows)), float(len(self.trials)))


def test_a_model_knows_the_trials_whose_value_is_known():
    """Infinities are values."""
    models, nan = OutcomeModels(1, Model), np.nan
    models.tell(np.zeros((3, 1)), np.array([[1.0, nan], [np.inf, nan], [nan, nan]]))
    mean, _ = models.outcome_moments(np.zeros((1, 1)))
    np.testing.assert_array_equal(mean, [[2.0, nan]])
    assert models.informed == models.models[:1]
    models.tell(np.zeros((1, 1)), np.array([[nan, -np.inf]]))
    assert models.outcome_moments(np.zeros((1, 1)))[0].tolist() == [[2.0, 1.0]]


def test_outcomes_that_came_after_a_state_are_gone_once_it_is_restored():
    models = OutcomeModels(1, Model)
    models.tell(np.zeros((2, 1)), np.ones((2, 1)))
    state = models.state()
    models.tell(np.zeros((3, 1)), np.ones((3, 2)))
    assert models.outcome_moments(np.zeros((1, 1)))[0].tolist() == [[5.0, 3.0]]
    models.restore(state)
    assert models.outcome_moments(np.zeros((1, 1)))[0].tolist() == [[2.0]]

"""The calibration of predicted standard deviations."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo.optimizer.models.variance_calibration import VarianceCalibration


@pytest.mark.parametrize("error", [0.25, 1.0, 2.0])
def test_the_scale_tends_to_the_error_in_deviations(error: float) -> None:
    calibration = VarianceCalibration()
    assert calibration.scale == 1.0
    for _ in range(400):
        calibration.update(np.array([0.5 * error]), np.zeros(1), np.array([0.5]))
    assert calibration.scale == pytest.approx(error, rel=1e-6)


def test_it_is_the_weighted_root_mean_square() -> None:
    scores = np.random.default_rng(0).uniform(0.0, 2.5, 30)
    calibration = VarianceCalibration()
    calibration.update(scores, np.zeros(30), np.ones(30))
    weights = (1.0 - 1.0 / 20.0) ** np.arange(30, -1, -1)
    squares = np.concatenate([[1.0], scores**2])
    assert calibration.scale == pytest.approx(np.sqrt(weights @ squares / weights.sum()))


def test_a_surprise_counts_as_three_deviations() -> None:
    surprised, capped = VarianceCalibration(), VarianceCalibration()
    surprised.update(np.array([1e6]), np.zeros(1), np.ones(1))
    capped.update(np.array([3.0]), np.zeros(1), np.ones(1))
    assert surprised.scale == capped.scale


def test_point_masses_say_nothing() -> None:
    calibration = VarianceCalibration()
    calibration.update(np.array([1.0]), np.zeros(1), np.zeros(1))
    assert calibration.scale == 1.0

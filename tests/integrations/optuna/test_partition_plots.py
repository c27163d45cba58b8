"""Partitions: choices and integers are in the middle of equal parts, and cells are around them."""

from __future__ import annotations

import numpy as np
import optuna
import pytest

from mondrian_bo.integrations.optuna.plots.lines import view
from mondrian_bo.integrations.optuna.plots.model import PartitionData, partition_data

optuna.logging.set_verbosity(optuna.logging.WARNING)
VALUES = {"a": 0.0, "b": 10.0, "c": 20.0}
PLACES = {"a": 1 / 6, "b": 3 / 6, "c": 5 / 6}


@pytest.fixture(scope="module")
def study() -> optuna.Study:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(
        lambda trial: (
            VALUES[trial.suggest_categorical("kind", list(VALUES))]
            + 0.1 * trial.suggest_int("n", 1, 3)
        ),
        n_trials=40,
    )
    return study


def _cells_of(data: PartitionData) -> list[int]:
    """Return the cell around each trial."""
    found = []
    for point in data.points:
        (cell,) = np.flatnonzero(((data.lower < point) & (point < data.upper)).all(axis=1))
        found.append(int(cell))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_cells_are_around_the_choices(study: optuna.Study, seed: int) -> None:
    data = partition_data(view(study), "kind", "n", seed=seed)
    np.testing.assert_allclose(
        data.points, [[PLACES[t.params["kind"]], (t.params["n"] - 0.5) / 3] for t in study.trials]
    )
    assert np.prod(data.upper - data.lower, axis=1).sum() == pytest.approx(1.0)
    values = [trial.value for trial in study.trials]
    # Each cell has the value of its own choice.
    np.testing.assert_allclose(data.means[_cells_of(data)], values, atol=2.0)

import sys

import numpy as np
import pytest

from mondrian_bo.benchmarks.suites.speed import ask_and_tell, growing_studies, learning, memory
from mondrian_bo.benchmarks.suites.speed.data import regression_data
from mondrian_bo.surrogates import MondrianForestRegressor


class FakeOnelearn:
    """Learns at once, and remembers what."""

    def __init__(self):
        self.seen = []

    def store(self, X, y):
        return X, y

    def learn(self, data, step):
        self.seen.append((data[0].shape, len(data[1]), step))
        return learning.Cost(3.0, 4.0)


def test_data_is_the_same_for_the_same_seed():
    X, y = regression_data(30, 2, seed=1)
    again, targets = regression_data(30, 2, seed=1)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, targets)
    assert X.shape == (30, 2) and X.min() >= 0.0 and X.max() < 1.0
    assert not np.array_equal(X, regression_data(30, 2, seed=2)[0])


def test_batch_is_compared_with_two():
    onelearn = FakeOnelearn()
    rows = learning.partial_fit(60, 5, 60, onelearn, at_least=4.0, repeats=2)
    assert onelearn.seen == [((60, 5), 60, 60)] * 2
    assert [row.baseline_name for row in rows[:3]] == ["onelearn", "scikit-garden", "scikit-garden"]
    assert rows[0].baseline == 3.0 and rows[0].baseline_wall == 4.0
    assert rows[1].baseline == pytest.approx(60 / 49_000)
    # onelearn took 3 s for what took 60 / 12300 s on the machine of the published figure.
    assert rows[2].baseline == pytest.approx(60 / 49_000 * 3.0 / (60 / 12_300))
    assert {row.ours for row in rows[:3]} == {rows[0].ours}
    assert rows[3].name.endswith("defaults") and rows[3].limit is None
    assert rows[3].baseline == rows[0].baseline and rows[3].ours != rows[0].ours


def test_batch_without_onelearn():
    rows = learning.partial_fit(60, 5, 60, None, at_least=4.0, repeats=1)
    assert [row.baseline for row in rows] == [None, pytest.approx(60 / 49_000), None]
    assert rows[0].reached is None


def test_one_by_one_is_compared_with_onelearn_alone():
    onelearn = FakeOnelearn()
    row, default = learning.partial_fit(12, 3, 1, onelearn, at_least=3.0, repeats=1)
    assert onelearn.seen == [((12, 3), 12, 1)]
    assert "12 x 3, one by one" in row.name and "hyperparameters=paper" in row.name
    assert default.name.endswith("defaults") and default.limit is None


def test_extra_trees():
    rows = learning.against_extra_trees(80, 2, repeats=1)
    assert {row.baseline_name for row in rows} == {"ExtraTrees"}
    fit, both, mean = rows[:3]
    assert all("hyperparameters=paper, branch_off=remaining" in row.name for row in rows[:3])
    assert all(row.name.endswith("defaults") and row.limit is None for row in rows[3:])
    assert both.baseline == mean.baseline
    assert fit.limit.value == 1.0 and both.limit.value == 0.5 and mean.limit is None


def test_process_updates():
    (row,) = learning.process_updates(60, 3, 20, updates=3)
    assert "60 x 3 learnt" in row.name and row.name.endswith("block_size=20")
    assert row.unit == "ms" and row.ours > 0.0 and row.limit is None


def test_ask_and_tell():
    tpe, random = ask_and_tell.ask_and_tell(14, n_parameters=2, n_timed=3, below=1e9)
    assert (tpe.baseline_name, random.baseline_name) == ("TPE", "Random")
    assert tpe.reached is True and random.limit is None
    assert tpe.ours == random.ours
    assert tpe.details["trials_measured"] == 3
    forest, _ = ask_and_tell.ask_and_tell(12, n_parameters=2, n_timed=1, surrogate="forest")
    assert forest.name.startswith('surrogate="forest": ask + tell, 2 floats')


def test_studies_are_filled_up_to_the_number(monkeypatch):
    made = []

    class Recorded(growing_studies.GrowingStudies):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(ask_and_tell, "GrowingStudies", Recorded)
    ask_and_tell.ask_and_tell(14, n_parameters=2, n_timed=3)
    ((*studies,),) = (one.studies for one in made)
    # And the two trials that follow the random ones.
    assert [len(study.trials) for study in studies] == [16, 16, 16]
    assert len({str([t.params for t in study.trials[:11]]) for study in studies}) == 1
    assert len({str(study.trials[11].params) for study in studies}) == 3


def test_whole_study():
    (row,) = ask_and_tell.whole_study(4, n_parameters=2)
    assert row.baseline_name == "TPE" and row.unit == "ms"
    assert row.details["trials_measured"] == 4


def test_all_arrays_are_counted():
    X, y = regression_data(40, 3)
    forest = MondrianForestRegressor(random_state=0).fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    inner = forest.model_.forest
    capacity, room = inner.arrays.parent.shape[1], inner.arrays.next_point.shape[1]
    assert capacity > inner.arrays.counters[:, 0].max()
    node = 4 + 8 + 2 + 8 + 8 + 4 + 4 + 16 + 32 + 8
    boxes = inner.arrays.box.shape[1] * 16 * 3
    expected = 10 * (capacity * node + boxes + 4 * room + 24 + 8) + room * (8 * 3 + 8)
    assert memory.array_bytes(forest) == expected


@pytest.mark.parametrize("step", [1000, 50])
def test_accounts_of_memory_agree(step):
    measured = memory.measure_memory(1000, 4, step)
    assert measured.arrays <= measured.traced <= measured.traced_peak
    assert measured.traced < 1.1 * measured.arrays + 1e5
    assert (measured.resident is None) == (not sys.platform.startswith("linux"))


def test_memory_row_in_a_process_of_its_own():
    row = memory.memory_row(500, 4, 500)
    assert row.limit.value == 200 * 24
    assert row.reached is True
    assert row.ours == row.details["arrays_per_point"]

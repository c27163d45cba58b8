"""Saved files: they go on as the saved object does, and execute nothing."""

from __future__ import annotations

import errno
import io
import itertools
import json
import math
import os
import pickle
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from interrupts import Interrupted, interrupt_at
from saved_spaces import LINE, MIXED, NUMBERS, PORTFOLIO, TINY

from mondrian_bo import Categorical, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import (
    ExpectedImprovement,
    ThompsonSampling,
)
from mondrian_bo.optimizer import Arm, Portfolio
from mondrian_bo.optimizer.earlier_studies.earlier_trials import EarlierTrials

nan = math.nan
CASES = {
    "process": (NUMBERS, {}),
    "one dimension": (LINE, {"n_startup_trials": 3, "acquisition": "log_ei"}),
    "forest": (MIXED, {"surrogate": "forest", "acquisition": ThompsonSampling()}),
    "amf": (MIXED, {"surrogate": "amf", "direction": "maximize", "acquisition": "thompson"}),
    "kernel": (NUMBERS, {"surrogate": "kernel", "n_estimators": 7, "seed": [3, 2**80]}),
    "portfolio": (MIXED, {"acquisition": PORTFOLIO, "n_candidates": 100}),
    "missing": (MIXED, {"allow_missing": True, "surrogate": "forest"}),
    "constraints": (NUMBERS, {"constraints": ["first", "second"], "seed": None}),
    "front": (
        NUMBERS,
        {
            "directions": ["minimize", "maximize"],
            "reference_point": [5.0, math.nan],
            "constraints": ["only"],
        },
    ),
    "earlier studies": (
        MIXED,
        {
            "warm_start": [
                ([{"x": x, "kind": 1.5, "y": 0.4} for x in (-1.0, 0.0, 0.9)], [4.0, 1.0, 2.0]),
                ([{"y": y} for y in (0.1, 0.6, 0.8, 1.3)], [0.1, 0.3, math.inf, 0.7]),
            ]
        },
    ),
    "feasible earlier trials": (
        MIXED,
        {
            "warm_start": [
                EarlierTrials(
                    "constrained",
                    np.array([[0.1, 1.0, nan, 0.4], [0.7, 1.0, nan, 0.2], [0.6, 3.0, nan, 0.9]]),
                    np.array([0.0, 1.0, 2.0]),
                    np.array([False, True, True]),
                )
            ]
        },
    ),
    "finite": (TINY, {"n_startup_trials": 2, "acquisition": ExpectedImprovement(0.5)}),
}


def step(optimizer, rng):
    """Ask, and tell, predict or wait at random."""
    names = list(optimizer.space.names)
    batch = optimizer.ask(int(rng.integers(1, 4)))
    for params in batch[int(rng.integers(2)) :]:
        numbers = optimizer.space.to_unit(params)
        x = float(np.nansum(numbers))
        # Equal values let a search restart, and some trials fail.
        values = [round((x - 0.4) ** 2, 2), math.sin(9.0 * x)][: len(optimizer.directions)]
        values = [math.nan] * len(values) if 0.8 < x < 1.1 else values
        constraints = [x - 0.7, math.nan if x < 0.2 else 0.3 - x][: len(optimizer.constraints)]
        if optimizer._allow_missing and rng.random() < 0.3:
            params = {name: params[name] for name in names[:2] if name in params}
        optimizer.tell(params, values if len(values) > 1 else values[0], constraints or None)
    if optimizer.n_trials and rng.random() < 0.3:
        optimizer.predict(batch[0])


@pytest.mark.parametrize("case", CASES)
def test_a_loaded_optimizer_goes_on_as_the_saved_one(tmp_path, case):
    space, settings = CASES[case]
    optimizer = MondrianOptimizer(space, **{"seed": 4, "n_startup_trials": 4, **settings})
    rng = np.random.default_rng(len(case))
    moments = {0, 1, int(rng.integers(2, 22)), 22}
    path = tmp_path / "optimizer.npz"
    for number in range(23):
        if case == "finite" and optimizer.n_trials + len(optimizer.pending) > 8:
            break
        step(optimizer, rng)
        if number not in moments:
            continue
        optimizer.save(path)
        # The saved object is another one, so that its own course is undisturbed.
        twin = pickle.loads(pickle.dumps(optimizer))
        loaded = MondrianOptimizer.load(path)
        assert repr(loaded) == repr(twin)
        assert loaded.pending == twin.pending
        for one in (loaded, twin):
            assert one.space == space or case == "finite"
        assert [loaded.ask() for _ in range(3)] == [twin.ask() for _ in range(3)]
        step(loaded, np.random.default_rng(number))
        step(twin, np.random.default_rng(number))
        assert loaded.ask(2) == twin.ask(2)
        if twin.n_trials:
            fronts = [one.pareto_front() for one in (loaded, twin)]
            assert [p for p, _ in fronts[0]] == [p for p, _ in fronts[1]]
    # A file of a loaded optimizer has the same content.
    loaded = MondrianOptimizer.load(path)
    loaded.save(tmp_path / "second.npz")
    assert (tmp_path / "second.npz").read_bytes() == path.read_bytes()


def test_a_collapsed_search_restarts_in_the_loaded_one(tmp_path):
    optimizer = MondrianOptimizer(LINE, seed=1, n_startup_trials=3)
    path = tmp_path / "file"
    n_restarted = 0
    for _ in range(40):
        params = optimizer.ask()
        optimizer.tell(params, (params["x"] - 0.3) ** 2)
        if optimizer._search.current is optimizer._search.whole or n_restarted == 4:
            continue
        n_restarted += 1
        optimizer.save(path)
        twin, loaded = pickle.loads(pickle.dumps(optimizer)), MondrianOptimizer.load(path)
        assert [loaded.ask() for _ in range(5)] == [twin.ask() for _ in range(5)]
    assert n_restarted


def test_known_errors_and_excluded_rows_are_saved(tmp_path):
    optimizer = MondrianOptimizer(NUMBERS, seed=1)
    rng = np.random.default_rng(0)
    for m in (1, 20, 6):
        rows = rng.random((m, 2))
        outcomes = np.column_stack([rows.sum(axis=1), rows[:, 0] - 0.5])
        errors = np.full((m, 2), 0.2)
        constraints = np.column_stack([outcomes[:, 1:]] * min(m, 2))
        errors = errors[:, [0] + [1] * constraints.shape[1]]
        optimizer.tell_rows(rows, outcomes[:, :1], constraints, errors)
        optimizer.tell_rows(rows + 1e-3, np.full(m, np.nan), None, None, nan_is_failure=False)
        # Some values are not known.
        gaps = np.where(np.arange(m)[:, None] % 3 == 1, np.nan, outcomes[:, :1])
        optimizer.tell_rows(rows + 2e-3, gaps, constraints, errors, nan_is_failure=False)
    optimizer.exclude_rows(np.array([[0.5, np.nan]]))
    optimizer.save(tmp_path / "file")
    loaded = MondrianOptimizer.load(tmp_path / "file")
    excluded = [one._search.trials.excluded for one in (loaded, optimizer)]
    np.testing.assert_array_equal(*excluded)
    assert [loaded.ask() for _ in range(3)] == [optimizer.ask() for _ in range(3)]
    rows = rng.random((9, 2))
    for one, other in zip(loaded.predict_rows(rows), optimizer.predict_rows(rows), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_interrupted_tell_is_not_in_the_file(tmp_path):
    n_undone = 0
    for n_event in range(1, 400, 9):
        optimizer, twin = (MondrianOptimizer(NUMBERS, seed=0) for _ in range(2))
        for one in (optimizer, twin):
            for params in one.ask(3)[:2]:
                one.tell(params, params["x"])
        waiting = optimizer.pending[0]
        try:
            interrupt_at(n_event, lambda: optimizer.tell(waiting, 1.0))  # noqa: B023
        except Interrupted:
            n_undone += optimizer.n_trials == 2
        if optimizer.n_trials == 3:
            twin.tell(waiting, 1.0)
        for one, name in ((optimizer, "first"), (twin, "second")):
            one.save(tmp_path / name)
        assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert n_undone > 3


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "good.npz"
    optimizer = MondrianOptimizer(MIXED, seed=0, constraints=["c"])
    for _ in range(4):
        params = optimizer.ask()
        optimizer.tell(params, params["x"], [params["x"]])
    optimizer.ask()
    optimizer.save(path)
    return path


def content(path):
    optimizer = MondrianOptimizer.load(path)
    arrays = optimizer._content()[2]
    return repr(optimizer), {name: array.tobytes() for name, array in arrays.items()}


def test_truncated_files_are_refused(saved, tmp_path):
    data = saved.read_bytes()
    path = tmp_path / "cut.npz"
    for n_bytes in [0, 1, 3, 4, 30, *range(100, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:n_bytes])
        with pytest.raises(ValueError, match=r"cut.npz cannot be loaded"):
            MondrianOptimizer.load(path)


def test_altered_files_are_refused(saved, tmp_path):
    data, expected = saved.read_bytes(), content(saved)
    path = tmp_path / "altered.npz"
    rng = np.random.default_rng(0)
    n_refused = 0
    for place in rng.permutation(len(data))[:300].tolist():
        altered = bytearray(data)
        altered[place] ^= int(rng.integers(1, 256))
        path.write_bytes(altered)
        try:
            # Bytes without a meaning, such as times of members, may change.
            assert content(path) == expected
        except ValueError as error:
            assert "altered.npz cannot be loaded" in str(error)
            n_refused += 1
    assert n_refused > 200


def rewrite(source, target, **members):
    with np.load(source) as archive:
        np.savez(target, **{**dict(archive), **members})


def with_header(saved, **changes):
    header = json.loads(np.load(saved)["header"].tobytes())
    return np.frombuffer(json.dumps({**header, **changes}).encode(), dtype=np.uint8)


def test_altered_members_are_refused(saved, tmp_path):
    path = tmp_path / "altered.npz"
    values = np.load(saved)["values"]
    rewrite(saved, path, values=values + 1.0)
    with pytest.raises(ValueError, match=r"altered.npz cannot be loaded: .* checksum"):
        MondrianOptimizer.load(path)
    rewrite(saved, path, header=with_header(saved, state={}))
    with pytest.raises(ValueError, match=r"altered.npz cannot be loaded: .* checksum"):
        MondrianOptimizer.load(path)


def test_later_versions_are_named(saved, tmp_path):
    path = tmp_path / "later.npz"
    rewrite(saved, path, header=with_header(saved, version=[math.inf, 3]))
    with pytest.raises(ValueError, match=r"later.npz cannot be loaded: .* altered"):
        MondrianOptimizer.load(path)
    rewrite(saved, path, header=with_header(saved, version=[2, 3], written_by="7.8"))
    with pytest.raises(ValueError, match=r"later.npz .* version 2.3 .* written by mondrian-bo 7.8"):
        MondrianOptimizer.load(path)


def test_additions_of_the_same_major_version_are_passed_over(saved, tmp_path, monkeypatch):
    from mondrian_bo.optimizer import stored_optimizer
    from mondrian_bo.optimizer.saving import saved_file

    path = tmp_path / "minor.npz"
    optimizer = MondrianOptimizer.load(saved)
    settings, state, arrays = optimizer._content()
    monkeypatch.setattr(saved_file, "VERSION", (1, saved_file.VERSION[1] + 1))
    stored_optimizer.write_file(
        path,
        {"settings": {**settings, "new": 1}, "state": {**state, "new": 2}, "new": 3},
        {**arrays, "new": np.ones(3)},
    )
    monkeypatch.undo()
    assert content(path) == content(saved)


def test_files_of_the_first_versions_have_pending_rows(saved, tmp_path):
    from mondrian_bo.optimizer import stored_optimizer

    optimizer = MondrianOptimizer.load(saved)
    settings, state, arrays = optimizer._content()
    path = tmp_path / "former.npz"
    del state["pending"]
    stored_optimizer.write_file(path, {"settings": settings, "state": state}, arrays)
    (former,), (now,) = MondrianOptimizer.load(path).pending, optimizer.pending
    np.testing.assert_array_equal(MIXED.to_unit(former), MIXED.to_unit(now))


def test_contradictions_are_refused(saved, tmp_path, monkeypatch):
    from mondrian_bo.optimizer import stored_optimizer

    settings, state, arrays = MondrianOptimizer.load(saved)._content()
    path = tmp_path / "odd.npz"
    kinds = arrays["rows"].copy()
    kinds[0, 1] = 77.0
    holes = arrays["rows"].copy()
    holes[0, 0] = np.nan
    for changed in (
        {"rows": kinds},
        {"rows": holes},
        {"rows": arrays["rows"][:, :2]},
        {"values": arrays["values"][:-1]},
        {"batches": arrays["batches"][:-1]},
        {"batches": -arrays["batches"]},
        {"pending": holes},
    ):
        stored_optimizer.write_file(
            path, {"settings": settings, "state": state}, {**arrays, **changed}
        )
        with pytest.raises(ValueError, match=r"odd.npz cannot be loaded: .* contradict"):
            MondrianOptimizer.load(path)
    (waiting,) = state["pending"]
    for pending in ([], [waiting, waiting], [{**waiting, "y": 0.123}], [{"x": 0.0}], ["x"]):
        stored_optimizer.write_file(
            path, {"settings": settings, "state": {**state, "pending": pending}}, arrays
        )
        with pytest.raises(ValueError, match=r"odd.npz cannot be loaded: .* contradict"):
            MondrianOptimizer.load(path)
    for n_asked in (-1, "1e400"):
        stored_optimizer.write_file(
            path, {"settings": settings, "state": {**state, "n_asked": n_asked}}, arrays
        )
        with pytest.raises(ValueError, match=r"odd.npz cannot be loaded: .* contradict"):
            MondrianOptimizer.load(path)
    for changed in ({"surrogate": "os.system"}, {"space": []}, {"acquisition": {"type": "eval"}}):
        stored_optimizer.write_file(
            path, {"settings": {**settings, **changed}, "state": state}, arrays
        )
        with pytest.raises(ValueError, match=r"odd.npz cannot be loaded: .* contradict"):
            MondrianOptimizer.load(path)


def test_a_function_of_inputs_is_given_again(tmp_path):
    path = tmp_path / "valid.npz"
    optimizer = MondrianOptimizer(NUMBERS, seed=0, n_startup_trials=3, is_valid=is_valid)
    for _ in range(6):
        params = optimizer.ask()
        optimizer.tell(params, params["x"])
    optimizer.save(path)
    with pytest.raises(ValueError, match=r"valid.npz cannot be loaded: .* `is_valid`"):
        MondrianOptimizer.load(path)
    loaded = MondrianOptimizer.load(path, is_valid=is_valid)
    assert [loaded.ask() for _ in range(3)] == [optimizer.ask() for _ in range(3)]


def is_valid(params):
    return params["x"] + params["y"] > 0.5


class Malicious:
    executed = False

    def __reduce__(self):
        return execute, ()


def execute():
    Malicious.executed = True


def test_nothing_is_executed(saved, tmp_path):
    path = tmp_path / "evil.npz"
    path.write_bytes(pickle.dumps(Malicious()))
    with pytest.raises(ValueError, match=r"evil.npz cannot be loaded: it is a pickle"):
        MondrianOptimizer.load(path)
    evil = np.array([Malicious()], dtype=object)
    for name in ("header", "rows", "more", "checksum"):
        with np.load(saved) as archive:
            np.savez(path, allow_pickle=True, **{**dict(archive), name: evil})
        with pytest.raises(ValueError, match=r"evil.npz cannot be loaded: .*Object arrays"):
            MondrianOptimizer.load(path)
    assert not Malicious.executed


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "foreign.npz"
    for write, array in itertools.product((np.savez, np.savez_compressed), ([1, 2], [0.5], ["a"])):
        write(path, rows=np.array(array))
        with pytest.raises(ValueError, match=r"foreign.npz cannot be .*save did not write\.$"):
            MondrianOptimizer.load(path)
    np.savez(path, header=np.frombuffer(b'{"format": "other"}', dtype=np.uint8))
    with pytest.raises(ValueError, match=r"foreign.npz cannot be loaded: .* did not write"):
        MondrianOptimizer.load(path)
    np.savez_compressed(path, header=np.zeros(10**6))
    with pytest.raises(ValueError, match=r"foreign.npz cannot be loaded: .* is compressed"):
        MondrianOptimizer.load(path)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("text.txt", "text")
    for data in (b"", b"{}", b"\x93NUMPY", b"(dp0\n.", buffer.getvalue()):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"foreign.npz cannot be loaded"):
            MondrianOptimizer.load(path)
    with pytest.raises(FileNotFoundError):
        MondrianOptimizer.load(tmp_path / "none")


def test_what_json_cannot_hold_is_refused(tmp_path):
    def score(prediction, incumbent):
        return prediction.means.mean(axis=0)

    choices = SearchSpace({"layers": Categorical(((64, 32), (16,)))})
    arm = Portfolio((Arm((score,)),))
    for space, settings in (
        (choices, {}),
        (LINE, {"acquisition": score}),
        (LINE, {"acquisition": arm}),
    ):
        optimizer = MondrianOptimizer(space, **settings)
        with pytest.raises(TypeError, match="pickle"):
            optimizer.save(tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_threads_save_to_one_path(saved, tmp_path):
    """Each writes a file of its own, and renames it."""
    optimizer, path = MondrianOptimizer.load(saved), tmp_path / "shared.npz"
    with ThreadPoolExecutor(8) as pool:
        for call in [pool.submit(optimizer.save, path) for _ in range(200)]:
            call.result()
    assert content(path) == content(saved)
    assert [one.name for one in tmp_path.iterdir()] == ["shared.npz"]


def test_an_argument_is_checked_before_the_file(saved):
    with pytest.raises(TypeError, match="`is_valid` must be a function or None, got 5"):
        MondrianOptimizer.load(saved, is_valid=5)


def test_a_missing_folder_is_named(saved, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"file.npz cannot be saved: .* folder .*none"):
        MondrianOptimizer.load(saved).save(tmp_path / "none" / "file.npz")
    with pytest.raises(IsADirectoryError, match="cannot be saved: it is a folder"):
        MondrianOptimizer.load(saved).save(tmp_path)
    with pytest.raises(TypeError, match="`path` must be a string or a path, got 3"):
        MondrianOptimizer.load(saved).save(3)


def test_the_longest_name_of_a_file_can_be_saved(saved, tmp_path):
    optimizer, longest = MondrianOptimizer.load(saved), "x" * os.pathconf(tmp_path, "PC_NAME_MAX")
    optimizer.save(tmp_path / longest)
    assert content(tmp_path / longest) == content(saved)
    with pytest.raises(OSError, match="xxx"):
        optimizer.save(tmp_path / (longest + "x"))
    assert [one.name for one in tmp_path.iterdir()] == [longest]


def test_a_failed_rename_names_the_file(saved, tmp_path, monkeypatch):
    def fail(self, target):
        raise PermissionError(errno.EACCES, "Permission denied", str(self), None, str(target))

    path = tmp_path / "file.npz"
    optimizer = MondrianOptimizer.load(saved)
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(PermissionError, match=r"Permission denied: '[^']*file.npz'$"):
        optimizer.save(path)
    assert not list(tmp_path.iterdir())


def test_a_failed_save_leaves_the_former_file(saved, tmp_path, monkeypatch):
    optimizer = MondrianOptimizer.load(saved)
    path = tmp_path / "file.npz"
    optimizer.save(path)
    former = path.read_bytes()
    optimizer.ask()

    def fail(self, data):
        Path.open(self, "wb").close()
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", fail)
        with pytest.raises(OSError, match="No space") as raised:
            optimizer.save(path)
    assert raised.value.filename == str(path)
    assert path.read_bytes() == former
    assert [one.name for one in tmp_path.iterdir()] == ["file.npz"]

"""Files of compiled code: many processes at once, and what is out of date."""

from __future__ import annotations

import multiprocessing
import pickle

import numpy as np
import pytest

from mondrian_bo import signature_files
from mondrian_bo.optimizer.steps.ridge_regression import correlation_of
from mondrian_bo.signature_files import SignatureFiles, package_stamp

WORKERS, SIGNATURES = 4, 40


def _store(folder: str, start, worker: int) -> None:
    start.wait()
    for number in range(SIGNATURES):
        key = (worker, number)
        # A small and a large one in turn, so that the workers overtake each other.
        SignatureFiles(folder, "function", "now").save(key, [key] * (1 + number % 2 * 20000))


def test_processes_that_store_at_the_same_time(tmp_path):
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(WORKERS)
    workers = [
        context.Process(target=_store, args=(str(tmp_path), start, worker))
        for worker in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    files = SignatureFiles(str(tmp_path), "function", "now")
    for worker in range(WORKERS):
        for number in range(SIGNATURES):
            assert files.load((worker, number))[0] == (worker, number)
    assert len(list(tmp_path.iterdir())) == WORKERS * SIGNATURES


def test_code_that_is_out_of_date(tmp_path, monkeypatch):
    files = SignatureFiles(str(tmp_path), "function", "before")
    later = SignatureFiles(str(tmp_path), "function", "after")
    assert files.load("float") is None
    files.save("float", b"before")
    assert files.load("float") == b"before"
    assert files.load("int") is None
    assert later.load("float") is None
    later.save("float", b"after")
    assert later.load("float") == b"after"
    assert files.load("float") is None
    # Another version's code is neither used nor replaced.
    monkeypatch.setattr(signature_files, "numba_version", "0.0")
    assert later.load("float") is None
    later.save("float", b"other version")
    assert later.load("float") == b"other version"
    monkeypatch.undo()
    assert later.load("float") == b"after"


def test_names_that_meet(tmp_path, monkeypatch):
    files = SignatureFiles(str(tmp_path), "function", "now")
    monkeypatch.setattr(files, "_path", lambda key: tmp_path / "same.nbc")
    files.save("float", b"code for floats")
    assert files.load("int") is None


@pytest.mark.parametrize("kept", [0, 10, -1])
def test_a_damaged_file(tmp_path, kept):
    files = SignatureFiles(str(tmp_path), "function", "now")
    files.save("float", b"code")
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:kept])
    assert files.load("float") is None


def test_every_damaged_byte_is_detected(tmp_path):
    files = SignatureFiles(str(tmp_path), "function", "now")
    files.save("float", b"code")
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    for i in range(len(content)):
        path.write_bytes(content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :])
        assert files.load("float") is None
    path.write_bytes(content)
    assert files.load("float") == b"code"


def test_a_file_without_a_digest_is_not_used(tmp_path):
    files = SignatureFiles(str(tmp_path), "function", "now")
    files.save("float", b"code")
    (path,) = tmp_path.iterdir()
    path.write_bytes(pickle.dumps("now") + pickle.dumps("float") + pickle.dumps(b"code"))
    assert files.load("float") is None


def test_flush_removes_the_files_of_one_function(tmp_path):
    for name in ("function", "other"):
        SignatureFiles(str(tmp_path), name, "now").save("float", b"code")
    files = SignatureFiles(str(tmp_path), "function", "now")
    files.flush()
    assert files.load("float") is None
    assert len(list(tmp_path.iterdir())) == 1
    files.flush()


def test_the_stamp_follows_the_sources_of_compiled_functions(tmp_path, monkeypatch):
    monkeypatch.setattr(signature_files, "__file__", str(tmp_path / "signature_files.py"))
    stamp = package_stamp.__wrapped__
    (tmp_path / "part").mkdir()
    compiled, other = tmp_path / "part" / "compiled.py", tmp_path / "other.py"
    compiled.write_text("from numba import njit\n", encoding="utf-8")
    other.write_text("x = 1\n", encoding="utf-8")
    before = stamp()
    other.write_text("x = 2\n", encoding="utf-8")
    assert stamp() == before
    compiled.write_text("from numba import njit  # changed\n", encoding="utf-8")
    assert stamp() != before


def test_compiled_functions_of_the_package_use_them():
    assert np.isclose(correlation_of(np.array([0.0, 1.0]), np.array([0.0, 2.0])), 1.0)
    files = correlation_of._cache._cache_file
    assert isinstance(files, SignatureFiles)
    assert files._stamp == package_stamp()

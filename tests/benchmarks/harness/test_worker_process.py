"""The protocol of worker processes, with scripts that need no package."""

import sys

import pytest

from mondrian_bo.benchmarks.harness.threads import THREAD_VARIABLES
from mondrian_bo.benchmarks.harness.worker_process import WorkerProcess, shared_worker

ECHO = """
import json, os, sys
for line in sys.stdin:
    print(json.dumps([json.loads(line), os.environ["OMP_NUM_THREADS"]]), flush=True)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(ECHO)
    return str(path)


def test_requests_and_answers(script):
    assert "OMP_NUM_THREADS" in THREAD_VARIABLES
    worker = WorkerProcess(sys.executable, script, "echo")
    for number in range(2):
        request, threads = worker.ask("repeat", number=number, text="line\nbreak")
        assert request == {"task": "repeat", "number": number, "text": "line\nbreak"}
        assert threads == "1"
    worker.close()
    assert worker._process.returncode == 0


def test_hashes_are_the_same_each_time(tmp_path):
    """A library that iterates over a set of strings gives the same result again."""
    script = tmp_path / "script.py"
    script.write_text("import sys\nfor line in sys.stdin: print(hash('a'), flush=True)\n")
    hashes = set()
    for _ in range(3):
        worker = WorkerProcess(sys.executable, str(script), "hash")
        hashes.add(worker.ask("hash"))
        worker.close()
    assert len(hashes) == 1


def test_infinity_is_an_answer(script):
    worker = WorkerProcess(sys.executable, script, "echo")
    (request, _) = worker.ask("repeat", value=float("inf"))
    worker.close()
    assert request["value"] == float("inf")


def test_a_script_that_ends(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("")
    worker = WorkerProcess(sys.executable, str(script), "count; see the manual")
    for _ in range(2):
        with pytest.raises(ValueError, match="cannot count; see the manual"):
            worker.ask("count")
    worker.close()


def test_an_interpreter_that_is_none(tmp_path, script):
    with pytest.raises(ValueError, match="nothing does not run"):
        WorkerProcess(tmp_path / "nothing", script, "echo")


def test_one_worker_for_all_callers(script):
    first = shared_worker(sys.executable, script, "echo")
    assert shared_worker(sys.executable, script, "echo") is first
    first.close()
    first.close()  # once more when this process ends
    shared_worker.cache_clear()

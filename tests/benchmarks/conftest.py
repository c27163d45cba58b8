"""Fixtures of the tests of benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from mondrian_bo.benchmarks.harness import runner


@pytest.fixture(scope="module")
def runs_in_this_process() -> Iterator[None]:
    """Run benchmarks in a thread of this process, where nothing is imported again.

    Processes of benchmarks are tested in `harness/test_runner.py` and `test_cli.py`.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_worker_pool", lambda n_jobs: ThreadPoolExecutor(1))
        yield


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do the same for a single test."""
    monkeypatch.setattr(runner, "_worker_pool", lambda n_jobs: ThreadPoolExecutor(1))

"""onelearn 0.3.0 in an environment of its own, which a process of ours talks to."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.benchmarks.speed import onelearn_worker
from mondrian_bo.benchmarks.speed.clock import Cost
from mondrian_bo.benchmarks.speed.threads import one_thread_environment

__all__ = ["OnelearnPeer"]

FloatArray = NDArray[np.float64]


class OnelearnPeer:
    """A process with onelearn, for the time of a ``with`` block.

    It compiles when it starts, once, because onelearn cannot keep what it has compiled: for a
    minute or more.

    Parameters
    ----------
    python : Path
        An interpreter that can import onelearn.

    Raises
    ------
    ValueError
        If it cannot.
    """

    def __init__(self, python: Path) -> None:
        self._python = python
        self._directory = TemporaryDirectory()
        self._n_files = 0
        try:
            self._process = subprocess.Popen(
                [str(python), "-W", "ignore", onelearn_worker.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=one_thread_environment(),
            )
        except OSError as error:
            self._directory.cleanup()
            raise ValueError(f"{python} does not run: {error}") from error

    def __enter__(self) -> Self:
        """Compile what will be measured."""
        rng = np.random.default_rng(0)
        for step in (1, 10):
            self.learn(self.store(rng.random((20, 3)), rng.random(20)), step)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the process."""
        self._process.communicate()
        self._directory.cleanup()

    def store(self, X: FloatArray, y: FloatArray) -> Path:
        """Write data to a file that the process can read."""
        path = Path(self._directory.name) / f"{self._n_files}.npz"
        self._n_files += 1
        np.savez(path, X=X, y=y)
        return path

    def learn(self, data: Path, step: int) -> Cost:
        """Measure ``partial_fit`` of a new ``AMFRegressor`` with 10 trees.

        Parameters
        ----------
        data : Path
            What `store` returned.
        step : int
            Points per call.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"data": str(data), "step": step}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self._process.stdout.readline()
        if not answer:
            self._process.wait()
            raise ValueError(
                f"{self._python} cannot run onelearn; "
                "see `python -m mondrian_bo.benchmarks.speed.make_onelearn_environment --help`"
            )
        return Cost(**json.loads(answer))

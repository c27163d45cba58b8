"""Measures onelearn 0.3.0 in a process with its own Python environment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

from mondrian_bo.benchmarks.harness.worker_process import WorkerProcess
from mondrian_bo.benchmarks.suites.speed import onelearn_worker
from mondrian_bo.benchmarks.suites.speed.clock import Cost
from mondrian_bo.shared.array_types import AnyArray, FloatArray

__all__ = ["PYTHON_VARIABLE", "Estimator", "OnelearnProcess"]

Estimator = Literal["regressor", "classifier"]
"""Which of onelearn's forests a task uses."""

PYTHON_VARIABLE = "MONDRIAN_BO_ONELEARN_PYTHON"
"""Environment variable that names onelearn's interpreter if no option does."""

_PURPOSE = "run onelearn; see `python -m mondrian_bo.benchmarks.make_environment --help`"
"""What the environment is for, in the message that says that there is none."""


class OnelearnProcess:
    """A process that runs onelearn during a ``with`` block.

    onelearn does not cache compiled code, so the process compiles it when it starts, for a minute
    or more.

    Parameters
    ----------
    python : Path
        An interpreter that can import onelearn.
    estimators : sequence of {"regressor", "classifier"}, default=("regressor",)
        Estimators whose learning is compiled at the start; predictions are compiled on first use.

    Raises
    ------
    ValueError
        If the interpreter does not run or cannot import onelearn.
    """

    def __init__(self, python: Path, estimators: Sequence[Estimator] = ("regressor",)) -> None:
        self._worker = WorkerProcess(python, onelearn_worker.__file__, _PURPOSE)
        self._estimators = tuple(estimators)
        self._directory = TemporaryDirectory()
        self._n_files = 0

    def __enter__(self) -> Self:
        """Compile the measured code."""
        rng = np.random.default_rng(0)
        for step in (1, 10):
            data = self.store(rng.random((20, 3)), np.arange(20) % 2.0)
            for estimator in self._estimators:
                self.learn(data, step, estimator)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the process."""
        self._worker.close()
        self._directory.cleanup()

    def store(self, X: AnyArray, y: AnyArray, tests: AnyArray | None = None) -> Path:
        """Write data and test inputs to a file that the process can read."""
        path = Path(self._directory.name) / f"{self._n_files}.npz"
        self._n_files += 1
        arrays = {"X": X, "y": y} if tests is None else {"X": X, "y": y, "tests": tests}
        np.savez(path, **arrays)  # type: ignore[arg-type]
        return path

    def learn(self, data: Path, step: int, estimator: Estimator = "regressor") -> Cost:
        """Measure ``partial_fit`` of a new ``AMFRegressor`` or ``AMFClassifier`` with 10 trees.

        Parameters
        ----------
        data : Path
            A file from `store`.
        step : int
            Points per call.
        estimator : {"regressor", "classifier"}, default="regressor"
            Which estimator learns.

        Returns
        -------
        Cost
            Its time.
        """
        return Cost(**self._ask("learn", data, step=step, estimator=estimator))

    def predict(self, data: Path, estimator: Estimator = "regressor") -> Cost:
        """Measure predictions (of a classifier, class probabilities) at the stored test inputs.

        Parameters
        ----------
        data : Path
            A file from `store`; the first of several consecutive calls learns it.
        estimator : {"regressor", "classifier"}, default="regressor"
            Which estimator predicts.

        Returns
        -------
        Cost
            Its time.
        """
        return Cost(**self._ask("predict", data, estimator=estimator))

    def remember(self, data: Path, estimator: Estimator = "regressor") -> dict[str, int] | None:
        """Measure the memory of an estimator that has learnt a batch.

        Parameters
        ----------
        data : Path
            A file from `store`.
        estimator : {"regressor", "classifier"}, default="regressor"
            Which estimator learns.

        Returns
        -------
        dict or None
            Bytes by which the process grew: ``resident`` at the end, ``peak`` at most. None if the
            system does not report them.
        """
        memory: dict[str, int] | None = self._ask("remember", data, estimator=estimator)
        return memory

    def forecast(self, data: Path, n_classes: int, seed: int) -> FloatArray:
        """Learn a stream of classes; each sample is predicted before it is learnt.

        Parameters
        ----------
        data : Path
            A file from `store`.
        n_classes, seed : int
            Number of classes, and seed of the forest.

        Returns
        -------
        float64 array of shape (n - 1,)
            The predicted probability of the class of each sample but the first.
        """
        return np.array(self._ask("forecast", data, n_classes=n_classes, seed=seed))

    def _ask(self, task: str, data: Path, **arguments: object) -> Any:
        return self._worker.ask(task, data=str(data), **arguments)

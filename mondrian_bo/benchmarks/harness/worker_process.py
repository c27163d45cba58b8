"""A process that answers requests in a Python environment of its own."""

from __future__ import annotations

import atexit
import json
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from mondrian_bo.benchmarks.harness.threads import one_thread_environment

__all__ = ["WorkerProcess", "shared_worker"]


class WorkerProcess:
    """A script that another interpreter runs, with one thread and the same hashes each time.

    A request is one line of JSON: an object with ``task`` and the arguments of the task. The script
    answers with one line of JSON. It ends when its standard input ends.

    Parameters
    ----------
    python : Path
        The interpreter.
    script : str
        Path of the script.
    purpose : str
        What the interpreter cannot do if the script ends, and what to do then; for the message.

    Raises
    ------
    ValueError
        If the interpreter does not run.
    """

    def __init__(self, python: Path, script: str, purpose: str) -> None:
        self._python = python
        self._purpose = purpose
        try:
            self._process = subprocess.Popen(
                [str(python), "-W", "ignore", script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                # SMAC's trials depend on the order of sets, which hashes of strings decide.
                env=one_thread_environment(PYTHONHASHSEED="0"),
            )
        except OSError as error:
            raise ValueError(f"{python} does not run: {error}") from error

    def ask(self, task: str, **arguments: object) -> Any:
        """Send a request and return the answer.

        Parameters
        ----------
        task : str
            What to do.
        **arguments : object
            Its arguments, as JSON has them.

        Returns
        -------
        object
            The answer, decoded from JSON.

        Raises
        ------
        ValueError
            If the script has ended.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"task": task, **arguments}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self._process.stdout.readline()
        if not answer:
            self._process.wait()
            raise ValueError(f"{self._python} cannot {self._purpose}")
        return json.loads(answer)

    def close(self) -> None:
        """End the process; it must not be asked again."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@cache
def shared_worker(python: Path, script: str, purpose: str) -> WorkerProcess:
    """Return a worker that all callers of this process share, and that ends with this process.

    Parameters and errors are those of :class:`WorkerProcess`.
    """
    worker = WorkerProcess(python, script, purpose)
    atexit.register(worker.close)
    return worker

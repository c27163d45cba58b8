"""A script that runs HEBO, for the interpreter that has it.

It runs in another environment and imports nothing of this package. Each line of standard input is a
JSON object with ``task``, the name of a method of `Study`, and its arguments. The script answers
with one line of JSON: the method's result.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


class Study:
    """A run of HEBO on a space."""

    def start(self, parameters: list[dict[str, Any]], seed: int) -> None:
        """Begin a new run.

        Parameters
        ----------
        parameters : list of dict
            What HEBO's design space parses.
        seed : int
            Seed of the first points, which are a Sobol sequence, and of numpy and torch.
        """
        import numpy as np
        import torch  # type: ignore[import-not-found,unused-ignore]
        from hebo.design_space.design_space import (  # type: ignore[import-not-found,unused-ignore]
            DesignSpace,
        )
        from hebo.optimizers.hebo import HEBO  # type: ignore[import-not-found,unused-ignore]

        np.random.seed(seed)  # noqa: NPY002, HEBO draws from this stream
        torch.manual_seed(seed)
        self._optimizer = HEBO(DesignSpace().parse(parameters), scramble_seed=seed)
        self._rows: list[Any] = []

    def suggest(self, n: int) -> list[dict[str, Any]]:
        """Return `n` suggestions; they are numbered in the order of all suggestions, from 0."""
        frame = self._optimizer.suggest(n)
        self._rows += [frame.iloc[[i]] for i in range(len(frame))]
        return [
            {
                name: getattr(value, "item", lambda value=value: value)()
                for name, value in row.items()
            }
            for row in frame.to_dict("records")
        ]

    def observe(self, number: int, value: float) -> None:
        """Report the value of a suggestion. HEBO ignores values that are not finite."""
        import numpy as np

        self._optimizer.observe(self._rows[number], np.array([[value]]))


def main() -> None:
    """Answer requests until standard input ends."""
    answers = sys.stdout
    study = Study()
    # HEBO and pymoo print notices.
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        for line in sys.stdin:
            arguments = json.loads(line)
            result = getattr(study, arguments.pop("task"))(**arguments)
            print(json.dumps(result), file=answers, flush=True)


if __name__ == "__main__":
    main()

"""A script that evaluates Bayesmark's tasks, for the interpreter that has Bayesmark.

It runs in another environment and imports nothing of this package. Each line of standard input is a
JSON object: ``model``, ``data``, ``metric``, ``params``, and ``seed``, a list of integers. The
script answers with one line: the loss that Bayesmark shows to optimizers, a cross-validated one.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from typing import Any


@cache
def _task(model: str, data: str, metric: str) -> Any:
    from bayesmark.sklearn_funcs import (  # type: ignore[import-not-found,unused-ignore]
        SklearnModel,
    )

    return SklearnModel(model, data, metric)


def evaluate(model: str, data: str, metric: str, params: dict[str, Any], seed: list[int]) -> float:
    """Evaluate a task as Bayesmark's own experiments do.

    Parameters
    ----------
    model, data, metric : str
        Bayesmark's names.
    params : dict
        All parameters of the model.
    seed : list of int
        Seed of numpy's global random stream, from which the models draw.

    Returns
    -------
    float
        The loss; infinity if the evaluation fails.
    """
    import numpy as np

    task = _task(model, data, metric)
    np.random.seed(seed)  # noqa: NPY002, the models draw from this stream
    try:
        visible, _ = task.evaluate(params)
    except Exception:  # as in `bayesmark.experiment.run_study`
        return float("inf")
    return float(visible)


def main() -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        arguments = json.loads(line)
        del arguments["task"]  # there is only one
        print(json.dumps(evaluate(**arguments)), flush=True)


if __name__ == "__main__":
    main()

"""A script that starts a study and prints, at its first model-based suggestion, its CPU time.

``python -m mondrian_bo.benchmarks.suites.speed.startup_process ours`` (or ``TPE``).
"""

from __future__ import annotations

import json
import sys
import time


def main(name: str) -> None:
    """Run a study until the first suggestion of the model.

    Parameters
    ----------
    name : {"ours", "TPE"}
        The sampler.
    """
    marks = {"python": time.process_time()}
    import optuna

    marks["optuna"] = time.process_time()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler: optuna.samplers.BaseSampler
    if name == "ours":
        from mondrian_bo import MondrianSampler

        sampler = MondrianSampler(seed=0)
    else:
        sampler = optuna.samplers.TPESampler(seed=0)
    marks["sampler"] = time.process_time()
    study = optuna.create_study(sampler=sampler)
    for i in range(11):
        if i == 10:
            marks["first trials"] = time.process_time()
        trial = study.ask()
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        if i < 10:
            study.tell(trial, x + y)
    marks["suggestion"] = time.process_time()
    print(json.dumps(marks), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

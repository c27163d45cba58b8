"""Measures the time of a pruner's decision.

``python -m mondrian_bo.benchmarks.suites.curves.cost`` prints a table.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings

import numpy as np
import optuna
from optuna.pruners import BasePruner, MedianPruner
from optuna.trial import TrialState, create_trial
from tqdm import tqdm

from mondrian_bo.benchmarks.report.text_table import to_text
from mondrian_bo.integrations.optuna.pruner import MondrianPruner

__all__ = ["main", "milliseconds"]

_N_MEASURED = 50
"""Latest reports of a trial whose decisions are measured: enough for a stable median."""


def milliseconds(pruner: BasePruner, n_trials: int, n_reports: int) -> tuple[float, float]:
    """Measure decisions on a trial, of a study in memory.

    Parameters
    ----------
    pruner : BasePruner
        The pruner.
    n_trials : int
        Number of complete trials of the study.
    n_reports : int
        Number of reports of each of them, at least 50.

    Returns
    -------
    tuple of two floats
        Milliseconds of CPU time of the first decision, which reads all trials, and the median of
        the decisions after each of the last 50 reports but one.
    """
    rng = np.random.default_rng(0)
    study = optuna.create_study(pruner=pruner)
    steps = np.arange(n_reports)
    for _ in range(n_trials):
        curve = rng.normal() + 3.0 * np.exp(-0.1 * steps) + 0.05 * rng.normal(size=n_reports)
        study.add_trial(
            create_trial(
                state=TrialState.COMPLETE,
                value=float(curve[-1]),
                intermediate_values=dict(enumerate(curve.tolist())),
            )
        )
    study.ask()
    trial = study.get_trials(deepcopy=False)[-1]
    trial.intermediate_values = dict.fromkeys(range(n_reports - _N_MEASURED), -10.0)
    times = []
    for step in range(n_reports - _N_MEASURED, n_reports - 1):
        trial.intermediate_values[step] = -10.0
        started = time.process_time()
        pruner.prune(study, trial)
        times.append(1e3 * (time.process_time() - started))
    return times[0], statistics.median(times[1:])


def main() -> None:
    """Print a table of times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, nargs="+", default=[20, 100, 1000])
    parser.add_argument("--reports", type=int, nargs="+", default=[50, 1000])
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    milliseconds(MondrianPruner(), 20, 50)  # Modules are loaded once.
    rows = []
    sizes = [(n, m) for n in arguments.trials for m in arguments.reports]
    for n_trials, n_reports in tqdm(sizes):
        row = [str(n_trials), str(n_reports)]
        for pruner in (MondrianPruner(), MedianPruner()):
            row += [f"{one:.2f}" for one in milliseconds(pruner, n_trials, n_reports)]
        rows.append(row)
    header = ["complete trials", "reports each", "first", "next", "median: first", "next"]
    print("Milliseconds of CPU time of a decision of MondrianPruner, and of MedianPruner.\n")
    print(to_text(header, rows))


if __name__ == "__main__":
    main()

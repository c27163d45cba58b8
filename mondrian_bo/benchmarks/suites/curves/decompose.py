"""Says where the time of runs goes: ``python -m mondrian_bo.benchmarks.suites.curves.decompose``.

The suite ``curves`` measures the time until a complete training is within 1 % of the best. This
module splits that time into complete and pruned trainings, for pruners that know more and more:

- `MondrianPruner`, as in the suite;
- the same threshold with a model that knows all curves of the task before the run;
- an oracle, which stops each training after two reports unless its outcome is better than all
  complete ones before. No pruner is faster with trainings of at least two reports.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import optuna
from optuna.pruners import BasePruner
from optuna.trial import FrozenTrial, TrialState
from tqdm import tqdm

from mondrian_bo.benchmarks.harness.methods import Method, random_search
from mondrian_bo.benchmarks.report.text_table import to_markdown, to_text
from mondrian_bo.benchmarks.suites.curves.recorded import Recorded, load
from mondrian_bo.benchmarks.suites.curves.replay import BUDGET, METHODS, replayed_trials
from mondrian_bo.benchmarks.suites.curves.tasks import TASKS

__all__ = ["KnownCurvesPruner", "OraclePruner", "Spent", "decompose", "main"]

_FEWEST_REPORTS = 2
"""Reports before which no training is stopped, as with the defaults of `MondrianPruner`."""


class OraclePruner(BasePruner):
    """Stops each training that does not improve on all complete ones before.

    Parameters
    ----------
    task : Recorded
        The trainings.
    """

    def __init__(self, task: Recorded) -> None:
        self._task = task

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Judge a running training by its recorded outcome."""
        n_steps = self._task.curves.shape[1]
        if not _FEWEST_REPORTS <= len(trial.intermediate_values) < n_steps:
            return False
        outcome = float(self._task.outcomes[self._task.setting(trial.params)])
        return not outcome < _best(study)


class KnownCurvesPruner(BasePruner):
    """`MondrianPruner` with a model that knows all curves of the task from the first trial.

    The model holds the curve of the judged training, too, so it is better than any that a study
    could have. The threshold is not calibrated.

    Parameters
    ----------
    task : Recorded
        The trainings.
    threshold : float
        A training is stopped if its probability to improve is lower.
    """

    def __init__(self, task: Recorded, threshold: float) -> None:
        # Loaded here: other pruners need no scipy.
        from mondrian_bo.optimizer.learning_curves.curve_regression import Curve
        from mondrian_bo.optimizer.learning_curves.learning_curves import LearningCurves

        self._task = task
        self._level = np.array([1.0 - threshold])
        self._model = LearningCurves(n_latest=len(task.curves))
        self._new_curve = Curve
        for values, outcome in zip(-task.curves, -task.outcomes, strict=True):
            if np.isfinite(values).all():
                self._model.tell(float(outcome), range(len(values)), values.tolist())

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Judge a running training by its reports and all curves of the task."""
        reports = list(trial.intermediate_values.values())
        if not _FEWEST_REPORTS <= len(reports) < self._task.curves.shape[1]:
            return False
        best = _best(study)
        if math.isinf(best):
            return False
        curve = self._new_curve()
        curve.extend(range(len(reports)), [-one for one in reports])
        quantiles = self._model.predict_quantiles(curve, self._level)
        return quantiles is not None and float(quantiles[0]) < -best


class Spent(NamedTuple):
    """Where the time of a run went, in mean times of a complete training.

    Attributes
    ----------
    time : float
        Time to the target; the budget if the run did not arrive.
    n_settings : int
        Number of trials, all with different settings while there are others.
    n_complete : int
        Number of complete trials.
    complete, pruned : float
        Times of complete and of pruned trials.
    has_pruned_target : bool
        Whether a setting that reaches the target was pruned.
    """

    time: float
    n_settings: int
    n_complete: int
    complete: float
    pruned: float
    has_pruned_target: bool


def decompose(task: Recorded, method: Method, seed: int, budget: float = BUDGET) -> Spent:
    """Run a study on recorded trainings, see :func:`replayed_trials`, and add up its times.

    Parameters
    ----------
    task, method, seed, budget
        As those of that function.

    Returns
    -------
    Spent
        The times.
    """
    times = {True: 0.0, False: 0.0}
    start, reached, n_complete, n_settings, has_pruned_target = 0.0, budget, 0, 0, False
    for trial in replayed_trials(task, method, seed, budget):
        times[trial.is_pruned] += trial.end - start
        start = trial.end
        n_settings += 1
        n_complete += not trial.is_pruned
        if task.outcomes[trial.setting] <= task.target:
            has_pruned_target |= trial.is_pruned
            if not trial.is_pruned and trial.end <= budget:
                reached = trial.end
    return Spent(reached, n_settings, n_complete, times[False], times[True], has_pruned_target)


def methods_of(task: Recorded) -> list[Method]:
    """Return what is compared on a task."""
    found = [METHODS["mondrian_pruner"]]
    for threshold in (0.03, 0.1):
        found.append(
            METHODS["mondrian_pruner"]._replace(
                pruner=partial(_known_curves, task, threshold),
                description=f"`MondrianSampler`, all curves known, {threshold:g}",
            )
        )
    for name, sampler in (
        ("`MondrianSampler`", METHODS["mondrian_pruner"].sampler),
        ("random settings", random_search),
    ):
        found.append(Method(sampler, partial(_oracle, task), f"{name}, oracle"))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables.

    Parameters
    ----------
    arguments : sequence of str, default=None
        Of the command line.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds, from 0")
    parser.add_argument("--tasks", default=",".join(TASKS), help="names, separated by commas")
    parser.add_argument("--markdown", action="store_true", help="print tables for a page")
    parsed = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    tasks = [load(name) for name in parsed.tasks.split(",")]
    names = [method.description for method in methods_of(tasks[0])]
    found: dict[tuple[str, str], list[Spent]] = {}
    for task in tqdm(tasks, desc="decompose"):
        for method in methods_of(task):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                runs = [decompose(task, method, seed) for seed in range(parsed.seeds)]
            found[task.name, method.description] = runs
    write = to_markdown if parsed.markdown else to_text
    header = ["pruner", *(task.name for task in tasks), "all"]
    rows = []
    for name in names:
        times = [np.mean([run.time for run in found[task.name, name]]) for task in tasks]
        overall = float(np.exp(np.log(times).mean()))
        rows.append([name, *(f"{time:.1f}" for time in times), f"{overall:.1f}"])
    print("Time to the first target; the last column is the geometric mean.\n")
    print(write(header, rows))
    header = ["pruner", "task", "settings", "complete", "time", "pruned", "time", "target pruned"]
    rows = []
    for name in names:
        for task in tasks:
            runs = found[task.name, name]
            columns = np.mean(np.array(runs, dtype=np.float64), axis=0)[1:].tolist()
            n_settings, n_complete, complete, pruned, lost = columns
            counts = f"{n_settings:.0f}", f"{n_complete:.1f}", f"{complete:.1f}"
            others = f"{n_settings - n_complete:.0f}", f"{pruned:.1f}", f"{lost:.0%}"
            rows.append([name, task.name, *counts, *others])
    print("\nMeans of a run: numbers of trials, and their times.\n")
    print(write(header, rows))


def _best(study: optuna.Study) -> float:
    """Return the smallest value of the complete trials, infinity if there is none."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return min((trial.value for trial in complete if trial.value is not None), default=math.inf)


def _known_curves(task: Recorded, threshold: float, n_steps: int) -> BasePruner:
    return KnownCurvesPruner(task, threshold)


def _oracle(task: Recorded, n_steps: int) -> BasePruner:
    return OraclePruner(task)


if __name__ == "__main__":
    main()

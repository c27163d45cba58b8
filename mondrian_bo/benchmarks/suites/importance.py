"""Importance of parameters on functions whose functional ANOVA is known: errors and time.

``mondrian-bo bench run --suite importance --seeds 20 --out DIR`` compares
:class:`mondrian_bo.MondrianImportanceEvaluator` with Optuna's fANOVA and PED-ANOVA. Each study has
random trials, or those of a search with TPE, many of which are where values are good. The error is
the mean over parameters of the absolute difference between the importance, normalised to the sum 1,
and the true share of the main effects. PED-ANOVA does not estimate these shares: it measures what
makes trials good.

References
----------
T. Ishigami and T. Homma (1990), An importance quantification technique in uncertainty analysis for
computer models. A. Saltelli and I. M. Sobol' (1995), About the use of rank transformation in
sensitivity analysis of model output (the g-function).
"""

from __future__ import annotations

import itertools
import math
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import optuna
from optuna.importance import (
    BaseImportanceEvaluator,
    FanovaImportanceEvaluator,
    PedAnovaImportanceEvaluator,
    get_param_importances,
)

from mondrian_bo.benchmarks.harness.methods import random_search, tpe
from mondrian_bo.benchmarks.report.text_table import publish
from mondrian_bo.benchmarks.suites.speed.clock import timed
from mondrian_bo.integrations.optuna.importance import MondrianImportanceEvaluator
from mondrian_bo.shared.array_types import FloatArray

TRIALS = (50, 200)
"""Numbers of trials of a study, our choice: a short one, and the budget of the default suite."""

SAMPLERS: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
    "random": random_search,
    "tpe": tpe,
}
"""Where the trials come from."""

EVALUATORS: dict[str, Callable[[int], BaseImportanceEvaluator]] = {
    "Gaussian process": lambda seed: MondrianImportanceEvaluator(seed=seed),
    "Mondrian forest": lambda seed: MondrianImportanceEvaluator(surrogate="forest", seed=seed),
    "fANOVA": lambda seed: FanovaImportanceEvaluator(seed=seed),
    "PED-ANOVA": lambda seed: PedAnovaImportanceEvaluator(),
}
"""What is compared."""

_G = np.array([0.0, 1.0, 4.5, 9.0, 99.0, 99.0])
"""Coefficients of the g-function: the first inputs matter most."""


class KnownFunction(NamedTuple):
    """A function of uniform inputs in [0, 1].

    Attributes
    ----------
    function : callable
        Maps points of shape (d,) to values.
    main : float64 array of shape (d,)
        Variances of the main effects.
    """

    function: Callable[[FloatArray], float]
    main: FloatArray


def ishigami(x: FloatArray) -> float:
    """Return Ishigami's function of the first three inputs; a fourth has no effect."""
    angles = math.pi * (2.0 * x - 1.0)
    first = math.sin(angles[0]) * (1.0 + 0.1 * angles[2] ** 4)
    return float(first + 7.0 * math.sin(angles[1]) ** 2)


def g_function(x: FloatArray) -> float:
    """Return the g-function."""
    return float(np.prod((np.abs(4.0 * x - 2.0) + _G) / (1.0 + _G)))


def additive(x: FloatArray) -> float:
    """Return a sum of smooth functions of one input each."""
    return float(4.0 * x[0] + math.cos(2.0 * math.pi * x[1]) + 2.0 * x[2] ** 2)


FUNCTIONS = {
    "ishigami": KnownFunction(
        ishigami, np.array([0.5 * (1.0 + math.pi**4 / 50.0) ** 2, 49.0 / 8.0, 0.0, 0.0])
    ),
    "g": KnownFunction(g_function, 1.0 / (3.0 * (1.0 + _G) ** 2)),
    "additive": KnownFunction(additive, np.array([16.0 / 12.0, 0.5, 4.0 * (1 / 5 - 1 / 9)])),
}
"""The functions by name."""


def new_study(name: str, sampler: str, n_trials: int, seed: int) -> optuna.Study:
    """Return a study of a function with trials of a sampler."""
    known = FUNCTIONS[name]

    def objective(trial: optuna.Trial) -> float:
        values = [trial.suggest_float(f"x{j}", 0.0, 1.0) for j in range(len(known.main))]
        return known.function(np.array(values))

    study = optuna.create_study(sampler=SAMPLERS[sampler](seed))
    study.optimize(objective, n_trials=n_trials)
    return study


def error_and_time(
    study: optuna.Study, evaluator: BaseImportanceEvaluator, main: FloatArray
) -> tuple[float, float]:
    """Return the error of an evaluator, as in the module's docstring, and its CPU seconds."""
    found: dict[str, float] = {}
    cost = timed(lambda: found.update(get_param_importances(study, evaluator=evaluator)))
    shares = np.array([found[f"x{j}"] for j in range(len(main))])
    return float(np.abs(shares - main / main.sum()).mean()), cost.cpu


def run(arguments: Namespace) -> None:
    """Run the comparison; the table is printed and written to ``DIR/importance.md``.

    Parameters
    ----------
    arguments : argparse.Namespace
        The parsed arguments of ``mondrian-bo bench run``, of which ``seeds``, ``trials`` (one
        number instead of 50 and 200) and ``out`` count.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    arguments.out.mkdir(parents=True, exist_ok=True)
    # Compiled functions are loaded before anything is timed.
    error_and_time(
        new_study("additive", "random", 20, 0), EVALUATORS["Gaussian process"](0), np.ones(3)
    )
    error_and_time(
        new_study("additive", "random", 20, 0), EVALUATORS["Mondrian forest"](0), np.ones(3)
    )
    table = summary(
        TRIALS if arguments.trials is None else (arguments.trials,), range(arguments.seeds)
    )
    publish(arguments.out / "importance.md", *table)


def summary(trials: Sequence[int], seeds: Sequence[int]) -> tuple[list[str], list[list[str]]]:
    """Return the table: a row for each function, sampler and number of trials."""
    header = ["function", "trials", *EVALUATORS]
    rows = []
    for name, sampler, n_trials in itertools.product(FUNCTIONS, SAMPLERS, trials):
        results = {label: [] for label in EVALUATORS}  # type: dict[str, list[tuple[float, float]]]
        for seed in seeds:
            study = new_study(name, sampler, n_trials, seed)
            for label, new in EVALUATORS.items():
                results[label].append(error_and_time(study, new(seed), FUNCTIONS[name].main))
        cells = []
        for found in results.values():
            errors, times = np.array(found).T
            cells.append(f"{errors.mean():.3f} ± {errors.std():.3f}; {np.median(times):.2f} s")
        rows.append([name, f"{n_trials} {sampler}", *cells])
    return header, rows

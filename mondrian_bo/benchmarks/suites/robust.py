"""The trial to recommend after a noisy study: that of the best value, or of the best prediction.

``mondrian-bo bench run --suite robust --seeds 20 --jobs 2 --out DIR`` runs samplers on the noisy
problems of the default suite and compares ``study.best_trial`` with
:func:`mondrian_bo.robust_best`, by the noise-free regrets of both. Studies are paired by seed; the
test is Wilcoxon's signed-rank test, one-sided.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

import numpy as np
import optuna
from tqdm import tqdm

from mondrian_bo.benchmarks.harness.methods import mondrian, random_search, tpe
from mondrian_bo.benchmarks.problems import SUITES, get_problem
from mondrian_bo.benchmarks.problems.base import suggest
from mondrian_bo.benchmarks.report.paired_tests import SIGNIFICANCE, wilcoxon_p_value
from mondrian_bo.benchmarks.report.text_table import publish
from mondrian_bo.integrations.optuna.robust_best import robust_best

SAMPLERS: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
    "mondrian": mondrian,
    "tpe": tpe,
    "random": random_search,
}
"""Where the trials come from."""


def problems() -> list[str]:
    """Return the names of the default suite's noisy problems."""
    return [name for name in SUITES["default"].problems if get_problem(name).noise > 0.0]


def regrets(name: str, sampler: str, seed: int, n_trials: int | None) -> tuple[float, float]:
    """Return the noise-free regrets of the trials with the best value and the best prediction."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    problem = get_problem(name)
    function = problem.instance(seed)
    assert problem.optimum is not None

    def objective(trial: optuna.Trial) -> float:
        return problem.observe(function(suggest(trial, problem.space)), seed, trial.number)

    study = optuna.create_study(sampler=SAMPLERS[sampler](seed))
    study.optimize(objective, n_trials=problem.budget if n_trials is None else n_trials)
    observed, robust = study.best_trial, robust_best(study)
    return function(observed.params) - problem.optimum, function(robust.params) - problem.optimum


def run(arguments: Namespace) -> None:
    """Run the comparison; the table is printed and written to ``DIR/robust.md``.

    Of the arguments of ``mondrian-bo bench run`` the seeds, trials, jobs and the directory count.
    """
    from joblib import Parallel, delayed

    arguments.out.mkdir(parents=True, exist_ok=True)
    header = ["problem", "sampler", "best value", "best prediction", "better, worse", "p"]
    rows = []
    pairs = [(name, sampler) for name in problems() for sampler in SAMPLERS]
    for name, sampler in tqdm(pairs, desc="robust"):
        runs = Parallel(n_jobs=arguments.jobs)(
            delayed(regrets)(name, sampler, seed, arguments.trials)
            for seed in range(arguments.seeds)
        )
        rows.append([name, sampler, *cells(np.array(runs))])
    publish(arguments.out / "robust.md", header, rows)


def cells(runs: np.ndarray) -> list[str]:
    """Return the cells of a row from regrets of shape (seeds, 2)."""
    observed, robust = runs.T
    better, worse = int((robust < observed).sum()), int((robust > observed).sum())
    # The one-sided p of many pairs without a difference would be 0.5.
    p = wilcoxon_p_value(observed - robust, "zsplit", "greater") if better + worse else 1.0
    star = "*" if p < SIGNIFICANCE else ""
    sizes = [f"{one.mean():.3g} ± {one.std():.2g}" for one in (observed, robust)]
    return [*sizes, f"{better}, {worse}", f"{p:.1g}{star}"]

"""The trial to recommend on COCO's noisy functions, as in the suite ``robust``.

``mondrian-bo bench run --suite robust_noisy --seeds 3 --trials 100 --out DIR`` runs samplers on the
functions of ``bbob-noisy`` in five dimensions, and compares ``study.best_trial`` with
:func:`mondrian_bo.robust_best` by the noise-free regrets of both. The unit is a function: the mean
over seeds of the difference of log10 regrets. The test is Wilcoxon's signed-rank test over
functions, two-sided.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

import numpy as np
from tqdm import tqdm

from mondrian_bo.benchmarks.problems.bbob import COCO_PRECISION
from mondrian_bo.benchmarks.problems.noisy import NOISY_FUNCTIONS, NoisyFunction
from mondrian_bo.benchmarks.report.paired_tests import (
    holm_corrected,
    log_difference_cells,
    wilcoxon_p_value,
)
from mondrian_bo.benchmarks.report.text_table import publish
from mondrian_bo.benchmarks.suites.robust import SAMPLERS, regrets
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["differences", "problems", "run", "table"]

_DIMENSION = 5
"""Number of inputs."""

HEADER = ["sampler", "noise", "better on", "log10 difference", "regret ratio", "p"]
"""Names of the columns."""


def problems() -> list[NoisyFunction]:
    """Return the functions."""
    return [problem for problem in NOISY_FUNCTIONS if len(problem.space) == _DIMENSION]


def differences(runs: FloatArray) -> FloatArray:
    """Return log10 regrets of the best prediction minus those of the best value, means over seeds.

    Parameters
    ----------
    runs : float64 array of shape (n_functions, n_seeds, 2)
        Regrets of the trials with the best value and with the best prediction.

    Returns
    -------
    float64 array of shape (n_functions,)
        Negative where the best prediction is better.
    """
    logs = np.log10(np.maximum(runs, COCO_PRECISION))
    means: FloatArray = (logs[..., 1] - logs[..., 0]).mean(axis=1)
    return means


def table(by_sampler: dict[str, FloatArray], kinds: Sequence[str]) -> list[list[str]]:
    """Return a row for each sampler and kind of noise, with Holm's correction over all rows.

    Parameters
    ----------
    by_sampler : dict of str to float64 array of shape (n_functions,)
        The `differences` of each sampler.
    kinds : sequence of str
        The kind of noise of each function.

    Returns
    -------
    list of list of str
        The cells of each row.
    """
    groups = [
        (sampler, kind, found[np.array([kind in (one, "all") for one in kinds])])
        for sampler, found in by_sampler.items()
        for kind in (*dict.fromkeys(kinds), "all")
    ]
    p_values = [wilcoxon_p_value(one, "wilcox") for _, _, one in groups]
    return [
        [sampler, kind, *log_difference_cells(one, p)]
        for (sampler, kind, one), p in zip(groups, holm_corrected(p_values), strict=True)
    ]


def run(arguments: Namespace) -> None:
    """Run the comparison; the table is printed and written to ``DIR/robust_noisy.md``.

    Of the arguments of ``mondrian-bo bench run`` the seeds, trials, jobs and the directory count.
    """
    from joblib import Parallel, delayed

    arguments.out.mkdir(parents=True, exist_ok=True)
    by_sampler = {}
    for sampler in SAMPLERS:
        runs = Parallel(n_jobs=arguments.jobs)(
            delayed(regrets)(problem.name, sampler, seed, arguments.trials)
            for problem in tqdm(problems(), desc=f"robust_noisy {sampler}")
            for seed in range(arguments.seeds)
        )
        by_sampler[sampler] = differences(np.reshape(runs, (-1, arguments.seeds, 2)))
    kinds = [problem.kind for problem in problems()]
    publish(arguments.out / "robust_noisy.md", HEADER, table(by_sampler, kinds))

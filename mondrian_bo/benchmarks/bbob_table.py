"""Regrets on functions of COCO's suites after several budgets, beside each baseline.

``python -m mondrian_bo.benchmarks.bbob_table docs/results/bbob.jsonl.gz`` prints the tables of an
archive, or of a directory that ``mondrian-bo bench run`` wrote to with the suite ``bbob``,
``bbob_unseen``, ``mixint``, ``noisy`` or ``parallel``. The unit is a function: the mean over seeds
of the difference of log10 regrets. Wilcoxon's signed-rank test over functions tells whether a
difference would hold on other functions of this kind. Holm's correction counts all rows of the
table. With ``--by-function`` each function has rows of its own, and the unit is an instance.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mondrian_bo.benchmarks.harness.archive import Results, read_results
from mondrian_bo.benchmarks.harness.samplers import split_names
from mondrian_bo.benchmarks.problems.bbob import COCO_PRECISION
from mondrian_bo.benchmarks.report.paired_tests import (
    holm_corrected,
    log_difference_cells,
    wilcoxon_p_value,
)
from mondrian_bo.benchmarks.report.text_table import to_markdown
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["BUDGETS", "Comparison", "compare", "main"]

BUDGETS = (25, 50, 100, 200)
"""Numbers of trials after which regrets are compared by default."""

_FAR_AHEAD = 0.3
"""Difference of log10 regrets from which on a function is named: a factor of two."""


class Comparison(NamedTuple):
    """A sampler and a baseline on functions of one dimension, after one budget.

    Attributes
    ----------
    sampler, baseline : str
        The two.
    dimension, budget : int
        Number of inputs, and of trials.
    functions : tuple of int
        COCO's number of the function of each difference.
    differences : float64 array of shape (n_functions,) or (n_seeds,)
        Log10 regret minus the baseline's; negative is better. Means over seeds, or, of one
        function, those of the seeds.
    p_value : float
        Two-sided, of Wilcoxon's signed-rank test over the differences; not corrected.
    """

    sampler: str
    baseline: str
    dimension: int
    budget: int
    functions: tuple[int, ...]
    differences: FloatArray
    p_value: float


def compare(
    results: Results,
    samplers: Sequence[str],
    baselines: Sequence[str],
    budgets: Sequence[int] = BUDGETS,
    functions: Collection[int] | None = None,
    by_function: bool = False,
) -> list[Comparison]:
    """Compare samplers with baselines in every dimension and after every budget.

    Parameters
    ----------
    results : Results
        Runs on functions of one suite of COCO.
    samplers : sequence of str
        The samplers.
    baselines : sequence of str
        Samplers that the others are compared with, but none with itself. Runs are paired by
        function, instance and seed.
    budgets : sequence of int
        Numbers of trials.
    functions : collection of int, optional
        COCO's numbers of the functions to compare on; by default all that have runs.
    by_function : bool, default=False
        Whether each function has a comparison of its own, over instances.

    Returns
    -------
    list of Comparison
        By sampler, baseline, dimension, budget and function; budgets that runs do not reach are
        left out.
    """
    dimensions = sorted({_numbers(problem)[1] for problem, _, _ in results.runs})
    found = []
    for sampler, baseline, dimension, budget in product(samplers, baselines, dimensions, budgets):
        if sampler == baseline:
            continue
        pairs: dict[int, list[float]] = {}
        for (problem, name, seed), curve in results.runs.items():
            other = results.runs.get((problem, baseline, seed))
            if name != sampler or other is None or _numbers(problem)[1] != dimension:
                continue
            if functions is not None and _numbers(problem)[0] not in functions:
                continue
            if min(len(curve.best), len(other.best)) < budget:
                continue
            optimum = results.facts[problem].optimum or 0.0
            own, theirs = (
                np.log10(max(one.best[budget - 1] - optimum, COCO_PRECISION))
                for one in (curve, other)
            )
            pairs.setdefault(_numbers(problem)[0], []).append(own - theirs)
        numbers = tuple(sorted(pairs))
        if by_function:
            parts = [((n,) * len(pairs[n]), np.array(pairs[n])) for n in numbers]
        elif pairs:
            parts = [(numbers, np.array([np.mean(pairs[n]) for n in numbers]))]
        else:
            parts = []
        for of_functions, differences in parts:
            p_value = wilcoxon_p_value(differences, "wilcox")
            found.append(
                Comparison(sampler, baseline, dimension, budget, of_functions, differences, p_value)
            )
    return found


def rows(comparisons: Sequence[Comparison]) -> list[list[str]]:
    """Return a row of cells for each comparison, with Holm's correction over all of them."""
    corrected = holm_corrected([one.p_value for one in comparisons])
    cells = []
    for one, p_value in zip(comparisons, corrected, strict=True):
        numbers = np.array(one.functions)
        means = [(float(one.differences[numbers == n].mean()), n) for n in set(one.functions)]
        behind = [
            f"f{number} +{mean:.1f}"
            for mean, number in sorted(means, reverse=True)
            if mean > _FAR_AHEAD
        ]
        cells.append(
            [
                one.sampler,
                one.baseline,
                str(one.dimension),
                str(one.budget),
                *log_difference_cells(one.differences, p_value),
                ", ".join(behind),
            ]
        )
    return cells


HEADER = ["sampler", "beside", "inputs", "trials", "ahead on", "log10 difference", "regret ratio"]
HEADER += ["p", "behind by > 0.3 decades"]
"""Names of the columns."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of a sampler beside baselines."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, nargs="+", help="archives, or directories of results")
    parser.add_argument(
        "--samplers", default="mondrian", help="separated by commas (default: %(default)s)"
    )
    parser.add_argument("--baselines", help="samplers (default: all that have runs)")
    parser.add_argument(
        "--budgets",
        default=",".join(map(str, BUDGETS)),
        help="numbers of trials, separated by commas (default: %(default)s)",
    )
    parser.add_argument(
        "--functions", help="COCO's numbers, separated by commas (default: all that have runs)"
    )
    parser.add_argument(
        "--by-function", action="store_true", help="rows for each function, over its instances"
    )
    parsed = parser.parse_args(arguments)
    results = read_results(parsed.source)
    samplers = split_names(parsed.samplers)
    there = sorted({name for _, name, _ in results.runs})
    baselines = split_names(parsed.baselines) if parsed.baselines else there
    budgets = [int(number) for number in parsed.budgets.split(",")]
    functions = parsed.functions and [int(number) for number in parsed.functions.split(",")]
    found = compare(results, samplers, baselines, budgets, functions, parsed.by_function)
    header, cells = HEADER, rows(found)
    if parsed.by_function:
        header = ["function", *HEADER]
        cells = [[f"f{one.functions[0]}", *row] for one, row in zip(found, cells, strict=True)]
    print(to_markdown(header, cells))


def _numbers(problem: str) -> tuple[int, int]:
    """Return function and dimension from a name such as ``bbob_f6_d10`` or ``bbob_f6_d10_i1``."""
    _, function, dimension, *_ = problem.split("_")
    return int(function[1:]), int(dimension[1:])


if __name__ == "__main__":
    main()

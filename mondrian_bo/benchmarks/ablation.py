"""Ablation of the default search: variants that lack one of its parts or have another one.

``python -m mondrian_bo.benchmarks.ablation --problems mixed6,conditional --seeds 8 --out FILE``
appends a JSON line per run to FILE, skips runs that FILE has, and prints a table by problem and a
table over all problems. With several numbers of trials (``--trials 500,2000``) one search of the
largest number gives a line for each.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mondrian_bo.acquisitions import (
    Acquisition,
    LogExpectedImprovement,
    ThompsonSampling,
    UpperConfidenceBound,
)
from mondrian_bo.benchmarks.harness.optimizer_run import OptimizerRun
from mondrian_bo.benchmarks.harness.run_log import in_parallel, keep, read_log
from mondrian_bo.benchmarks.problems import get_problem
from mondrian_bo.benchmarks.report.paired_tests import holm_corrected, signed_rank_test
from mondrian_bo.benchmarks.report.text_table import to_markdown
from mondrian_bo.optimizer.search.portfolio import Arm, Portfolio, get_portfolio
from mondrian_bo.surrogates.gaussian_process.fit import Prior

_DEFAULT = get_portfolio("gaussian_process", "auto")
"""The default portfolio, which the variants modify."""

_ARM = _DEFAULT.arms[0]
"""Its only arm."""

_WIDE = _ARM.acquisitions
"""Its acquisitions."""

_SCEPTICAL = {"prior": Prior(), "scale_strength": math.inf}
"""Mean 0 and an amplitude near 1, the prior of Optuna's GPSampler."""


_RESOLUTION = 1e-6
"""Regret below which runs count as equal."""


def _one(restarts: bool = True, rugged: Arm | None = _DEFAULT.rugged, **changes: Any) -> Portfolio:
    """Return the default portfolio with changes of its arm."""
    return Portfolio((replace(_ARM, **changes),), restarts, rugged)


class Learnt(Sequence[Acquisition]):
    """Acquisitions that are chosen by how often each has improved on the incumbent.

    The choice is Thompson sampling: the probability that an acquisition's next trial improves has a
    Beta distribution, uniform before its first trial. A search draws an acquisition by its index;
    this sequence shows it one acquisition alone, and each access draws.
    """

    def __init__(self, acquisitions: Sequence[Acquisition], seed: int) -> None:
        self._acquisitions = acquisitions
        self._rng = np.random.default_rng(seed)
        self._counts = np.ones((len(acquisitions), 2))
        self._latest: int | None = None

    def __len__(self) -> int:
        """Return 1."""
        return 1

    def __getitem__(self, index: Any) -> Any:
        """Draw the acquisition of the next trial."""
        self._latest = int(np.argmax(self._rng.beta(*self._counts.T)))
        return self._acquisitions[self._latest]

    def __iter__(self) -> Iterator[Acquisition]:
        """Iterate over all acquisitions, without a draw."""
        return iter(self._acquisitions)

    def note(self, is_best: bool) -> None:
        """Record whether the latest trial is the best so far, if an acquisition suggested it."""
        if self._latest is not None:
            self._counts[self._latest, 0 if is_best else 1] += 1.0
            self._latest = None


VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "learnt from success": {},
    "no restarts": {"acquisition": _one(restarts=False)},
    "no quadratics": {"acquisition": _one(quadratic=0.0, evolution=0.0)},
    "no evolution": {"acquisition": _one(evolution=0.0)},
    "no plateau steps": {"acquisition": _one(plateau=0.0)},
    "no exploration": {"acquisition": _one(exploration=0.0)},
    "no forest where rugged": {"acquisition": _one(rugged=None)},
    "no input warping": {"acquisition": _one(options={**_ARM.options, "input_warping": False})},
    "values as they are": {"acquisition": _one(power=False)},
    "sceptical prior": {"acquisition": _one(options=_SCEPTICAL)},
    "log-EI alone": {"acquisition": _one(acquisitions=(LogExpectedImprovement(),))},
    "log-EI 0.01 alone": {"acquisition": _one(acquisitions=(LogExpectedImprovement(0.01),))},
    "UCB alone": {"acquisition": _one(acquisitions=(UpperConfidenceBound(),))},
    "Thompson too": {"acquisition": _one(acquisitions=(*_WIDE, ThompsonSampling()))},
    "two settings": {
        "acquisition": replace(
            _DEFAULT, arms=(_ARM, Arm((LogExpectedImprovement(),), False, _SCEPTICAL))
        )
    },
    "GPSampler's setting": {
        "acquisition": _one(
            restarts=False,
            rugged=None,
            acquisitions=(LogExpectedImprovement(),),
            power=False,
            options=_SCEPTICAL,
        )
    },
    "four trees": {"n_estimators": 4},
    "blocks of 100": {"acquisition": _one(options={**_ARM.options, "block_size": 100})},
    "blocks of 500": {"acquisition": _one(options={**_ARM.options, "block_size": 500})},
    "one process": {"acquisition": _one(options={**_ARM.options, "block_size": 10**6})},
    "150 candidates": {"n_candidates": 150},
    "blocks of 1000 and 150 candidates": {
        "n_candidates": 150,
        "acquisition": _one(options={**_ARM.options, "block_size": 1000}),
    },
    "forest of constants": {"surrogate": "forest"},
    "aggregated forest": {"surrogate": "amf"},
}
"""Arguments of :class:`MondrianOptimizer` by name of the variant; the names are saved with runs."""


def run(variant: str, name: str, seed: int, lengths: Sequence[int]) -> list[dict[str, Any]]:
    """Search once and return the regrets.

    Parameters
    ----------
    variant : str
        One of `VARIANTS`.
    name : str
        A problem.
    seed : int
        Seed of the problem and of the search.
    lengths : sequence of int
        Numbers of trials. The search has the largest of them, and its first trials are those of a
        shorter search with this seed.

    Returns
    -------
    list of dict
        For each length: the arguments as ``run``; regrets of the best observed trial at 25, 50 and
        100 % of the trials; mean CPU milliseconds of a suggestion.
    """
    problem = get_problem(name)
    settings = VARIANTS[variant]
    learnt = Learnt(_WIDE, seed) if variant == "learnt from success" else None
    if learnt is not None:
        settings = {"acquisition": Portfolio((replace(_ARM, acquisitions=learnt),), restarts=True)}
    search = OptimizerRun.of(problem, seed, **settings)
    lowest, exact, regrets, seconds = np.inf, np.inf, [], [0.0]
    for _ in range(max(lengths)):
        start = time.process_time()
        params = search.optimizer.ask()
        seconds.append(seconds[-1] + time.process_time() - start)
        _, value, observed = search.step(params)
        if learnt is not None:
            learnt.note(observed < lowest)
        if observed < lowest:
            lowest, exact = observed, value
        regrets.append(exact - (problem.optimum or 0.0))
    return [
        {
            "run": [variant, name, seed, length],
            "regrets": [float(regrets[n - 1]) for n in (length // 4, length // 2, length)],
            "milliseconds": 1e3 * seconds[length] / length,
        }
        for length in lengths
    ]


def table(records: Iterable[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: a row for each problem and variant.

    p is that of Wilcoxon's signed-rank test of the final regrets against the default's, over the
    seeds that both have; regrets below a millionth count as 0.
    """
    header = ["problem", "variant", "runs", "25 %", "50 %", "mean", "median", "worst", "< 0.001"]
    header += ["p", "CPU ms"]
    groups: dict[Any, dict[int, list[float]]] = defaultdict(dict)
    costs = defaultdict(list)
    for record in records:
        variant, name, seed, n_trials = record["run"]
        groups[name, n_trials, variant][seed] = record["regrets"]
        costs[name, n_trials, variant].append(record["milliseconds"])
    rows = []
    for (name, n_trials, variant), regrets in sorted(groups.items()):
        values = np.array(list(regrets.values()))
        last = values[:, -1]
        default = groups.get((name, n_trials, "default"), {})
        common = sorted(regrets.keys() & default.keys())
        pairs = np.array([(regrets[seed][-1], default[seed][-1]) for seed in common])
        pairs = np.where(pairs < _RESOLUTION, 0.0, pairs).reshape(-1, 2)
        p_value = signed_rank_test(*pairs.T)[1]
        numbers = [*values.mean(axis=0), np.median(last), last.max()]
        rows.append(
            [f"{name}, {n_trials}", variant, str(len(last))]
            + [f"{number:.3g}" for number in numbers]
            + [f"{np.mean(last < 1e-3):.0%}", "" if variant == "default" else f"{p_value:.2g}"]
            + [f"{np.mean(costs[name, n_trials, variant]):.3g}"]
        )
    return header, rows


def summary(records: Iterable[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: a row for each number of trials and variant, over all problems.

    Each pair of runs of a variant and of the default, with one problem and seed, has a difference
    of the log10 of final regrets, which are at least a millionth. The row has the mean of the
    differences and its standard error, p of Wilcoxon's signed-rank test with Holm's correction for
    all rows, and the geometric mean of the ratios of CPU times.
    """
    header = ["trials", "variant", "problems", "pairs", "log10 difference", "p", "CPU ratio"]
    runs = {tuple(record["run"]): record for record in records}
    groups: dict[tuple[int, str], list[tuple[str, float, float]]] = defaultdict(list)
    for (variant, name, seed, n_trials), own in runs.items():
        other = runs.get(("default", name, seed, n_trials))
        if variant == "default" or other is None:
            continue
        ends = np.maximum([own["regrets"][-1], other["regrets"][-1]], _RESOLUTION)
        cost = math.log(own["milliseconds"] / other["milliseconds"])
        groups[n_trials, variant].append((name, float(np.log10(ends[0] / ends[1])), cost))
    cells, p_values = [], []
    for (n_trials, variant), pairs in sorted(groups.items()):
        names, differences, costs = zip(*pairs, strict=True)
        n, gaps = len(pairs), np.array(differences)
        error = f" ± {gaps.std(ddof=1) / math.sqrt(n):.3f}" if n > 1 else ""
        p_values.append(signed_rank_test(gaps, np.zeros(n))[1])
        counts = [str(len(set(names))), str(n)]
        difference = f"{gaps.mean():+.3f}{error}"
        cells.append(
            [str(n_trials), variant, *counts, difference, f"{math.exp(np.mean(costs)):.2f}"]
        )
    rows = [
        [*row[:-1], f"{p_value:.2g}", row[-1]]
        for row, p_value in zip(cells, holm_corrected(p_values), strict=True)
    ]
    return header, rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", required=True, help="names, separated by commas")
    parser.add_argument("--variants", default=",".join(VARIANTS), help="default: all")
    parser.add_argument("--seeds", type=int, default=8, help="default: %(default)s")
    parser.add_argument(
        "--trials", default="200", help="numbers, separated by commas (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default: 1)")
    parser.add_argument("--out", type=Path, required=True, help="file of results")
    options = parser.parse_args(arguments)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    records = read_log(options.out)
    done = {tuple(record["run"]) for record in records}
    lengths = [int(number) for number in options.trials.split(",")]
    todo = [
        (variant, name, seed, missing)
        for seed in range(options.seeds)
        for name in options.problems.split(",")
        for variant in options.variants.split(",")
        if (missing := [n for n in lengths if (variant, name, seed, n) not in done])
    ]
    results = in_parallel(run, todo, options.jobs)
    for found in keep(results, options.out, n_results=len(todo), lines=list):
        records += found
    print(to_markdown(*table(records)))
    print()
    print(to_markdown(*summary(records)))


if __name__ == "__main__":
    main()

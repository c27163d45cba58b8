"""Earlier studies: the trials that they save, and those that they cost if they mislead.

``mondrian-bo bench run --suite warm_starts --seeds 10 --jobs 2 --out DIR`` searches problems of the
default suite, and recorded trainings of the suite ``curves``, without and with earlier studies. An
earlier study is the default search for 50 trials on a *relative* of the problem:

- ``shifted``: every number is shifted by up to a tenth of its range; values are rescaled;
- ``similar``: the same, without the lowest fifth of each range and without one parameter;
- ``negated``: the problem itself, with the sign of its values changed;
- ``unrelated``: a bowl at a random place, plus a random part for each choice;
- ``mixed``: the earlier studies ``shifted``, ``negated`` and ``unrelated`` together;
- ``short``: recorded trainings of the same task that end after a fifth of the steps;
- ``other``: recorded trainings of the same model on other data, whose outcomes have a rank
  correlation of -0.2 to 0.1 (boosting) and 0.4 to 0.5 (perceptrons) with those of the task.

The quality to be reached is the worse final value of the two runs, without and with earlier
studies, plus 1 % of the problem's scale. *Saved* trials are the difference of the numbers of trials
until then; they are negative where earlier studies cost trials. A search that ends worse with
earlier studies lowers the quality to be reached, so compare the final values as well.
``DIR/warm_starts.jsonl.gz`` keeps the runs; finished ones are not run again, nor are those of an
archive that ``--known`` names.
"""

from __future__ import annotations

import math
import zlib
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mondrian_bo.benchmarks.harness.optimizer_run import OptimizerRun, Trial
from mondrian_bo.benchmarks.harness.random_points import random_values
from mondrian_bo.benchmarks.harness.run_log import archived_runs
from mondrian_bo.benchmarks.problems import get_problem
from mondrian_bo.benchmarks.report.paired_tests import wilcoxon_p_value
from mondrian_bo.benchmarks.report.text_table import to_markdown, to_text
from mondrian_bo.benchmarks.suites.curves.recorded import load
from mondrian_bo.benchmarks.suites.curves.tasks import TASKS
from mondrian_bo.search_space import Float, SearchSpace
from mondrian_bo.shared.array_types import FloatArray

Objective: TypeAlias = Callable[[Mapping[str, Any]], float]
"""A function of the parameters by name."""

PROBLEMS = (
    *("shifted_branin", "shifted_hartmann6", "shifted_ackley5", "shifted_levy10"),
    *("mixed6", "conditional"),
    *("shifted_hartmann3", "shifted_rosenbrock4", "shifted_styblinski_tang6", "deep_tree"),
)
"""Problems of the default suite: six of the development half, and four held-out ones."""

RECORDED = {
    "boosting_diabetes": "boosting_cancer",
    "boosting_cancer": "boosting_diabetes",
    "mlp_digits": "mlp_diabetes",
    "mlp_diabetes": "mlp_digits",
}
"""Recorded tasks and their relatives: the same model on other data. The perceptrons share three of
their four and five settings."""

COLD = "cold"
"""The search without earlier studies."""

METHODS: dict[str, tuple[str, ...]] = {
    COLD: (),
    "shifted": ("shifted",),
    "similar": ("similar",),
    "negated": ("negated",),
    "unrelated": ("unrelated",),
    "mixed": ("shifted", "negated", "unrelated"),
    "short": ("short",),
    "other": ("other",),
}
"""Kinds of the earlier studies of each method."""

_N_TRIALS = 60
"""Trials of a run, our choice: later, smooth problems are solved to many digits."""

_N_EARLIER = 50
"""Trials of an earlier study, our choice."""

_SHIFT = 0.1
"""Largest shift of a number, as a share of its range, as on the default suite."""

_NARROWED = 0.2
"""Share of a range that a similar study lacks, our choice."""

_SHORT = 0.2
"""Share of the steps that short trainings have, our choice."""

_TOLERANCE = 0.01
"""Tolerance of the quality to be reached, as a share of a problem's scale."""

_JUDGED_AT = 20
"""Trial by which the search should have stopped to use unhelpful studies, our choice."""

ARCHIVE = "warm_starts.jsonl.gz"
"""Name of the file of runs."""


class Task(NamedTuple):
    """What is searched.

    Attributes
    ----------
    space : SearchSpace
        The parameters.
    function : callable
        The objective, minimised.
    """

    space: SearchSpace
    function: Objective


def methods_of(name: str) -> list[str]:
    """Return the methods that a problem is searched with, the cold one first."""
    return [
        one for one in METHODS if one == COLD or (one in ("short", "other")) == (name in RECORDED)
    ]


def task_of(name: str, seed: int) -> Task:
    """Return a problem on the instance of a seed, or a recorded task."""
    if name in RECORDED:
        return _recorded(name)
    problem = get_problem(name)
    return Task(problem.space, problem.instance(seed))


def relative(name: str, seed: int, kind: str) -> Task:
    """Return what an earlier study has searched."""
    if kind == "other":
        return _recorded(RECORDED[name])
    if kind == "short":
        return _recorded(name, _SHORT)
    space, function = task_of(name, seed)
    if kind == "negated":
        return Task(space, lambda params: -function(params))
    rng = np.random.default_rng([seed, zlib.crc32(f"{name} {kind}".encode())])
    if kind == "unrelated":
        centre = rng.random(len(space))
        parts = [rng.random(max(int(n), 1)) for n in space.n_choices]

        def bowl(params: Mapping[str, Any]) -> float:
            row = space.to_unit(params)
            return math.fsum(
                parts[j][int(row[j])] if space.is_categorical[j] else (row[j] - centre[j]) ** 2
                for j in np.flatnonzero(~np.isnan(row))
            )

        return Task(space, bowl)
    shifts = np.where(space.is_categorical, 0.0, rng.uniform(-_SHIFT, _SHIFT, len(space)))

    def shifted(params: Mapping[str, Any]) -> float:
        row = space.snap((space.to_unit(params) + shifts)[None])[0]
        return 3.0 * function(space.from_unit(row)) + 20.0

    return Task(space, shifted) if kind == "shifted" else _similar(space, shifted)


def _similar(space: SearchSpace, function: Objective) -> Task:
    """Return a task with narrower ranges, and without the last parameter that nothing needs."""
    parents = {one.condition.parent for one in space.values() if one.condition is not None}
    free = [name for name, one in space.items() if one.condition is None and name not in parents]
    fixed = {name: space[name].from_unit(0.5) for name in free[-1:]}
    parameters = dict(space)
    for name, one in space.items():
        if isinstance(one, Float) and one.step is None:
            low = float(one.from_unit(_NARROWED))
            parameters[name] = Float(low, one.high, log=one.log, condition=one.condition)
        if name in fixed:
            del parameters[name]
    return Task(SearchSpace(parameters), lambda params: function({**params, **fixed}))


def _recorded(name: str, share: float = 1.0) -> Task:
    """Return a share of recorded trainings; settings between the levels have the nearest one."""
    recording, levels = load(name), TASKS[name].levels
    is_log = {
        one: min(values) > 0 and max(values) >= 50 * min(values) for one, values in levels.items()
    }
    space = SearchSpace(
        {one: Float(min(values), max(values), log=is_log[one]) for one, values in levels.items()}
    )
    n_steps = math.ceil(share * recording.curves.shape[1])
    outcomes = recording.outcomes if share == 1.0 else recording.curves[:, n_steps - 1]
    # A diverged training is as bad as the worst one.
    outcomes = np.nan_to_num(outcomes, nan=float(np.nanmax(outcomes)))

    def function(params: Mapping[str, Any]) -> float:
        nearest = []
        for one, values in levels.items():
            scale: Any = np.log if is_log[one] else np.asarray
            nearest.append(int(np.abs(scale(values) - scale(params[one])).argmin()))
        return float(outcomes[np.ravel_multi_index(nearest, recording.shape)])

    return Task(space, function)


def _search(task: Task, seed: list[int], n_trials: int, **settings: Any) -> dict[str, Any]:
    """Return parameters, values and, with earlier studies, their weights in the middle."""
    search = OptimizerRun(task.space, task.function, seed, **settings)
    trials: list[Trial] = []
    weights: list[float] = []
    for _ in range(n_trials):
        trials.append(search.step())
        if len(trials) == _JUDGED_AT:
            weights = search.optimizer.earlier_weights.tolist()
    params, values, _ = zip(*trials, strict=True)
    return {"params": list(params), "values": list(values), "weights": weights}


def runs_of(name: str, seed: int, n_trials: int | None = None) -> list[dict[str, Any]]:
    """Search a problem with all its methods.

    Returns
    -------
    list of dict
        ``problem``, ``seed``, ``method``, ``values`` in the order of trials, and ``weights`` of the
        earlier studies after 20 trials.
    """
    task, methods = task_of(name, seed), methods_of(name)
    kinds = sorted({kind for method in methods for kind in METHODS[method]})
    earlier = {kind: _search(relative(name, seed, kind), [seed, 8], _N_EARLIER) for kind in kinds}
    records = []
    for method in methods:
        start = [(earlier[kind]["params"], earlier[kind]["values"]) for kind in METHODS[method]]
        found = _search(task, [seed, 7], n_trials or _N_TRIALS, warm_start=start)
        rounded = {key: [float(f"{x:.6g}") for x in found[key]] for key in ("values", "weights")}
        records.append({"problem": name, "seed": seed, "method": method, **rounded})
    return records


def scale(name: str) -> float:
    """Return the median minus the smallest value of random points, on the instance of seed 0."""
    values = random_values(*task_of(name, 0))
    return float(np.median(values) - np.min(values))


def saved_trials(cold: FloatArray, warm: FloatArray, slack: float) -> int:
    """Return the trials that a run needs less than the cold one.

    Parameters
    ----------
    cold, warm : float64 arrays of shape (n,)
        Values of the trials, minimised.
    slack : float
        Tolerance of the quality to be reached.
    """
    target = max(float(cold.min()), float(warm.min())) + slack
    return int(np.argmax(cold <= target)) - int(np.argmax(warm <= target))


def run(arguments: Namespace) -> None:
    """Run the measurement, archive it and print the tables, which go to ``DIR/warm_starts.md``.

    The arguments are those of :func:`mondrian_bo.benchmarks.harness.run_log.archived_runs`.
    """
    names = [*PROBLEMS, *RECORDED]
    records = archived_runs(arguments, ARCHIVE, names, runs_of, "warm starts")
    tables = [by_problem(records), by_method(records)]
    text = "\n\n".join(to_markdown(*table) for table in tables)
    (arguments.out / "warm_starts.md").write_text(text + "\n", encoding="utf-8")
    print("\n\n".join(to_text(*table) for table in tables))


def _saved(records: list[dict[str, Any]]) -> dict[tuple[str, str], FloatArray]:
    """Return the saved trials of all seeds by problem and method."""
    values: dict[tuple[str, str], list[FloatArray]] = {}
    for one in records:
        values.setdefault((one["problem"], one["method"]), []).append(np.array(one["values"]))
    return {
        (name, method): np.array(
            [
                saved_trials(cold, warm, _TOLERANCE * scale(name))
                for cold, warm in zip(values[name, COLD], warm_runs, strict=True)
            ]
        )
        for (name, method), warm_runs in values.items()
        if method != COLD
    }


def by_problem(records: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return a row for each problem: mean and standard deviation of the saved trials."""
    saved = _saved(records)
    methods = [one for one in METHODS if one != COLD]
    rows = []
    for name in dict.fromkeys(problem for problem, _ in saved):
        cells = [
            f"{saved[name, one].mean():.0f} ± {saved[name, one].std():.0f}"
            if (name, one) in saved
            else ""
            for one in methods
        ]
        rows.append([name, *cells])
    return ["saved trials", *methods], rows


def by_method(records: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return a row for each method: saved trials over all problems, and weights after 20 trials.

    The p is that of Wilcoxon's signed-rank test, two-sided, over all runs.
    """
    saved = _saved(records)
    rows = []
    for method in dict.fromkeys(one for _, one in saved):
        all_saved = np.concatenate([one for (_, name), one in saved.items() if name == method])
        better, worse = int((all_saved > 0).sum()), int((all_saved < 0).sum())
        p = wilcoxon_p_value(all_saved, "zsplit")
        weights = np.array([one["weights"] for one in records if one["method"] == method])
        kinds = METHODS[method]
        forgotten = [f"{(weights[:, k] == 0.0).mean():.0%}" for k in range(len(kinds))]
        error = all_saved.std() / math.sqrt(len(all_saved))
        rows.append(
            [
                method,
                f"{all_saved.mean():.1f} ± {error:.1f}",
                f"{better}, {worse}",
                f"{p:.1g}",
                ", ".join(forgotten),
            ]
        )
    header = ["earlier studies", "saved trials", "runs better, worse", "p"]
    return [*header, f"forgotten by trial {_JUDGED_AT}"], rows

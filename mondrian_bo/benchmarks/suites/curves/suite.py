"""The suite ``curves``: simulated training time until samplers and pruners find a good setting."""

from __future__ import annotations

import gzip
import json
import sys
import warnings
from argparse import Namespace
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import optuna
from tqdm import tqdm

from mondrian_bo.benchmarks.harness.methods import Method
from mondrian_bo.benchmarks.harness.peer_run import PEERS
from mondrian_bo.benchmarks.harness.run_log import (
    in_parallel,
    known_logs,
    read_log,
    write_whole,
)
from mondrian_bo.benchmarks.harness.samplers import split_names
from mondrian_bo.benchmarks.report.text_table import to_markdown, to_text
from mondrian_bo.benchmarks.suites.curves.recorded import TOLERANCE, load
from mondrian_bo.benchmarks.suites.curves.replay import BUDGET, METHODS, Replay, replay
from mondrian_bo.benchmarks.suites.curves.smac_replay import (
    SMAC_METHODS,
    SmacHyperband,
    replay_smac,
)
from mondrian_bo.benchmarks.suites.curves.tasks import TASKS
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["Key", "read", "run", "time_to", "write_tables"]

_N_BOOTSTRAP = 2000
"""Resamples of seeds behind an interval: its ends vary by about 1 % of its width."""

_ALL_METHODS: dict[str, Method | SmacHyperband] = {**METHODS, **SMAC_METHODS}
"""The methods of the suite, by the names that are saved with runs."""

_REFERENCE = "mondrian_pruner"
"""The method that the others are compared with."""

_FOLDS_ONLY = "tpe_wilcoxon"
"""The method whose pruner is made for folds, and not for epochs, which have a trend."""

_TARGETS = {
    "target": f"within {TOLERANCE:.0%} of the best setting",
    "rank_target": f"within {TOLERANCE:.0%} of the best setting, or among the best {TOLERANCE:.0%} "
    "of the settings",
}
"""The targets of :class:`Recorded`, in words. The first is the stricter one, which ends a run."""


class Key(NamedTuple):
    """What identifies a run."""

    task: str
    method: str
    seed: int


Runs: TypeAlias = dict[Key, Replay]
"""Replayed runs by task, method and seed."""


def run(arguments: Namespace) -> None:
    """Run the suite: ``mondrian-bo bench run --suite curves --seeds 10 --out DIR``.

    Writes the runs to ``DIR/curves.jsonl.gz``, tables to ``curves.md`` and a picture to
    ``curves.png``, and prints the tables. Finished runs are kept and not run again.

    Parameters
    ----------
    arguments : argparse.Namespace
        The parsed arguments: ``out``; ``seeds``; ``jobs``; ``known``, archives whose runs are not
        run again; ``half``, of the tasks; ``samplers``, names of methods, or None for all.

    Raises
    ------
    ValueError
        If there are no seeds, `samplers` holds no name or one that is not a method, or a known
        archive is missing.
    """
    if arguments.seeds < 1:
        raise ValueError("the suite curves needs at least one seed")
    arguments.out.mkdir(parents=True, exist_ok=True)
    archive = arguments.out / "curves.jsonl.gz"
    runs: Runs = {}
    for path in [*known_logs(arguments.known, archive.name), archive]:
        runs |= read(path)
    methods = _methods(arguments.samplers)
    tasks = [name for name in TASKS if arguments.half in (None, TASKS[name].half)]
    # Seeds come first, so that an interrupted suite has comparable runs of every method.
    keys = [
        Key(task, method, seed)
        for seed, task, method in product(range(arguments.seeds), tasks, methods)
        if TASKS[task].outcome == "mean" or method != _FOLDS_ONLY
    ]
    todo = [key for key in keys if key not in runs]
    absent = {key.method for key in todo if key.method in SMAC_METHODS}
    if absent and not PEERS["smac"].is_installed:
        remedy = PEERS["smac"].remedy
        print(f"skipping {', '.join(sorted(absent))}: needs SMAC ({remedy})", file=sys.stderr)
        keys, todo = ([key for key in some if key.method not in absent] for some in (keys, todo))
        if not keys:
            raise ValueError("none of the methods asked for is installed")
    results = in_parallel(_replay, zip(todo), arguments.jobs)
    for key, replayed in tqdm(results, total=len(todo), desc="curves"):
        runs[key] = replayed
        _write(archive, runs)
    _write(archive, runs)
    text = write_tables({key: runs[key] for key in keys}, arguments.out)
    print(text, end="")


def read(path: Path) -> Runs:
    """Read the runs of an archive; none if there is no file.

    Raises
    ------
    ValueError
        If it has runs of another program.
    """
    try:
        return {Key(*record.pop("run")): Replay(**record) for record in read_log(path)}
    except (AttributeError, KeyError, TypeError):
        raise ValueError(f"{path} has runs of another program") from None


def time_to(replayed: Replay, target: float) -> float:
    """Return when a run reached an outcome; the budget if it did not."""
    pairs = zip(replayed.times, replayed.outcomes, strict=True)
    return next((time for time, outcome in pairs if outcome <= target), BUDGET)


def write_tables(runs: Mapping[Key, Replay], directory: Path) -> str:
    """Write ``curves.md`` and ``curves.png``; return the tables for a terminal.

    Parameters
    ----------
    runs : mapping of Key to Replay
        The same seeds for each pair of task and method.
    directory : Path
        Where to write.

    Returns
    -------
    str
        The text.
    """
    tasks = list(dict.fromkeys(key.task for key in runs))
    methods = [name for name in _ALL_METHODS if any(key.method == name for key in runs)]
    n_seeds = 1 + max(key.seed for key in runs)
    sections = []
    for name in _TARGETS:
        times = {
            (task, method): np.array(
                [
                    time_to(runs[Key(task, method, seed)], getattr(load(task), name))
                    for seed in range(n_seeds)
                ]
            )
            for task, method in product(tasks, methods)
            if Key(task, method, 0) in runs
        }
        legend = (
            f"Simulated training time until a complete trial is {_TARGETS[name]}, in mean times of "
            f"a complete training: mean ± standard deviation over {n_seeds} seeds; a run that does "
            f"not arrive counts as {BUDGET:.0f}. In brackets: runs that did not arrive. Tasks "
            "marked * are held out: no default was chosen on them."
        )
        header = ["method", *(task + "*" * (TASKS[task].half == "held-out") for task in tasks)]
        rows = [
            [
                _ALL_METHODS[method].description,
                *(_cell(times.get((task, method))) for task in tasks),
            ]
            for method in methods
        ]
        sections.append((legend, (header, rows)))
        if _REFERENCE in methods:
            legend = (
                "Geometric mean over tasks of these means, and its ratio to that of "
                f"{_ALL_METHODS[_REFERENCE].description}, with the 95 % interval of a bootstrap "
                "over seeds; then trials of a run, and pruned trials that would have improved on "
                "all complete ones."
            )
            full = [one for one in methods if all((task, one) in times for task in tasks)]
            sections.append((legend, _comparison(runs, times, tasks, full)))
    for suffix, write in (("md", to_markdown), ("txt", to_text)):
        text = "\n\n".join(f"{one}\n\n{write(*table)}" for one, table in sections) + "\n"
        (directory / f"curves.{suffix}").write_text(text, encoding="utf-8")
    _draw(times, tasks, methods, directory / "curves.png")
    return text


def _methods(names: str | None) -> list[str]:
    if names is None:
        return list(_ALL_METHODS)
    chosen = split_names(names)
    if not chosen:
        raise ValueError(f"--samplers needs names between commas, got {names!r}")
    unknown = [name for name in chosen if name not in _ALL_METHODS]
    if unknown:
        raise ValueError(f"unknown method {unknown[0]!r}; known: {', '.join(_ALL_METHODS)}")
    return chosen


def _replay(key: Key) -> tuple[Key, Replay]:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = _ALL_METHODS[key.method]
        if isinstance(method, SmacHyperband):
            return key, replay_smac(load(key.task), method, key.seed)
        return key, replay(load(key.task), method, key.seed)


def _write(path: Path, runs: Runs) -> None:
    """Write all runs in their order: a resumed suite has the same file as one in a single go."""
    lines = (json.dumps({"run": list(key), **runs[key]._asdict()}) + "\n" for key in sorted(runs))
    # Without a time stamp, equal runs are equal files.
    write_whole(path, gzip.compress("".join(lines).encode(), mtime=0))


def _cell(times: FloatArray | None) -> str:
    if times is None:
        return ""
    missed = int((times >= BUDGET).sum())
    return f"{times.mean():.1f} ± {times.std():.1f}" + (f" ({missed})" if missed else "")


def _comparison(
    runs: Mapping[Key, Replay],
    times: Mapping[tuple[str, str], FloatArray],
    tasks: Sequence[str],
    methods: Sequence[str],
) -> tuple[list[str], list[list[str]]]:
    header = ["method", "time", "ratio", "interval", "complete", "pruned", "lost"]
    n_seeds = len(times[tasks[0], methods[0]])
    drawn = np.random.default_rng(0).integers(n_seeds, size=(_N_BOOTSTRAP, n_seeds))

    def overall(method: str) -> FloatArray:
        """Geometric means over tasks: of all seeds, then of each resample."""
        means = [
            np.append(times[task, method].mean(), times[task, method][drawn].mean(axis=1))
            for task in tasks
        ]
        return np.asarray(np.exp(np.log(means).mean(axis=0)))

    reference = overall(_REFERENCE)
    rows = []
    for method in methods:
        ratios = overall(method) / reference
        low, high = np.percentile(ratios[1:], (2.5, 97.5))
        own = [runs[key] for key in runs if key.method == method]
        counts = [
            np.mean([getattr(one, name) for one in own])
            for name in ("n_complete", "n_pruned", "n_lost")
        ]
        rows.append(
            [
                _ALL_METHODS[method].description,
                f"{overall(method)[0]:.1f}",
                f"{ratios[0]:.2f}",
                "" if method == _REFERENCE else f"{low:.2f} to {high:.2f}",
                *(f"{count:.0f}" for count in counts[:2]),
                f"{counts[2]:.1f}",
            ]
        )
    return header, rows


def _draw(
    times: Mapping[tuple[str, str], FloatArray],
    tasks: Sequence[str],
    methods: Sequence[str],
    path: Path,
) -> None:
    """Draw the share of runs that have arrived against the time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    styles = {"mondrian": "-", "smac": ":"}  # there are more methods than colours
    n_columns = min(3, len(tasks))
    n_rows = -(-len(tasks) // n_columns)
    figure = Figure(figsize=(3.4 * n_columns, 2.5 * n_rows + 0.8), layout="constrained")
    panels = np.ravel(figure.subplots(n_rows, n_columns, sharey=True, squeeze=False))
    for panel, task in zip(panels, tasks, strict=False):
        for i, method in enumerate(methods):
            if (task, method) not in times:
                continue
            arrived = np.sort(times[task, method])
            shares = np.arange(1, len(arrived) + 1) / len(arrived)
            found = arrived < BUDGET
            panel.step(
                np.concatenate([[0.0], arrived[found], [BUDGET]]),
                np.concatenate([[0.0], shares[found], [found.mean()]]),
                where="post",
                color="black" if method == _REFERENCE else f"C{i}",
                linewidth=2.2 if method == _REFERENCE else 1.1,
                linestyle=styles.get(method.partition("_")[0], "--"),
                label=_ALL_METHODS[method].description.replace("`", ""),
            )
        panel.set(title=task, xlim=(0.0, BUDGET), ylim=(0.0, 1.02))
    for panel in panels[len(tasks) :]:
        panel.set_axis_off()
    for panel in panels[: len(tasks)][-n_columns:]:
        panel.set_xlabel("time, in complete trainings")
    figure.supylabel(f"runs among the best {TOLERANCE:.0%}")
    entries = {
        label: line
        for panel in panels
        for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=80)

"""The report on a benchmark: tables as text and Markdown, regret curves as pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from mondrian_bo.benchmarks.curves import plot_regret
from mondrian_bo.benchmarks.results import read_sessions
from mondrian_bo.benchmarks.summary import (
    ProblemResults,
    SamplerSummary,
    load_results,
    summarize,
)
from mondrian_bo.benchmarks.text_table import to_markdown, to_text

__all__ = ["write_report"]

_HEADER = (
    "sampler",
    "runs",
    "final best",
    "at 25 %",
    "at 50 %",
    "hits",
    "mean rank",
    "ms per trial",
)
_LEGEND = (
    "Best noise-free value found, minimised: mean ± standard deviation over runs at the end, "
    "means at 25 % and 50 % of the trials. Hits: runs that end at the optimum, within the "
    "tolerance. Mean rank: among the samplers, per seed, where hits tie. Milliseconds: wall time "
    "of ask and tell on one thread."
)

_Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]


def write_report(directory: Path, out: Path) -> str:
    """Write ``report.txt``, ``report.md`` and one ``<problem>.png`` per problem.

    Parameters
    ----------
    directory : Path
        Where ``mondrian-bo bench run`` wrote to.
    out : Path
        Where to write; created if needed.

    Returns
    -------
    str
        The report as text.

    Raises
    ------
    ValueError
        If the directory holds no finished run.
    """
    results = load_results(directory)
    summaries = [summarize(result) for result in results]
    samplers = sorted({summary.sampler for group in summaries for summary in group})
    versions = _versions(directory)

    out.mkdir(parents=True, exist_ok=True)
    text, markdown = [_LEGEND], ["# Benchmark report", _LEGEND]
    for result, group in zip(results, summaries, strict=True):
        title = _title(result)
        text += [title, _problem_table(group, to_text)]
        picture = f"{result.facts.name}.png"
        plot_regret(result, samplers, out / picture)
        markdown += [f"## {title}", _problem_table(group, to_markdown), f"![regret]({picture})"]
    if len(results) > 1:
        title = "Mean rank over the problems"
        text += [title, _rank_table(results, summaries, samplers, to_text)]
        markdown += [f"## {title}", _rank_table(results, summaries, samplers, to_markdown)]
    text.append(versions)
    markdown.append(versions)

    report = "\n\n".join(text) + "\n"
    (out / "report.txt").write_text(report, encoding="utf-8")
    (out / "report.md").write_text("\n\n".join(markdown) + "\n", encoding="utf-8")
    return report


def _title(result: ProblemResults) -> str:
    facts = result.facts
    return (
        f"{facts.name}: {facts.description} (optimum {facts.optimum:.6g}, tolerance "
        f"{facts.tolerance:g}, {result.n_trials} trials)"
    )


def _problem_table(group: Sequence[SamplerSummary], table: _Table) -> str:
    rows = []
    for summary in group:
        digits = _digits(summary.final_std)
        final = f"{summary.final_mean:.{digits}f}"
        if not math.isnan(summary.final_std):
            final += f" ± {summary.final_std:.2g}"
        rows.append(
            [
                summary.sampler,
                str(summary.n_runs),
                final,
                f"{summary.quarter_mean:.{digits}f}",
                f"{summary.half_mean:.{digits}f}",
                f"{summary.hits}/{summary.n_runs}",
                _number(summary.mean_rank),
                f"{summary.milliseconds:.3g}",
            ]
        )
    return table(_HEADER, rows)


def _digits(deviation: float) -> int:
    """Decimals that show two digits of a deviation, from 3 to 6."""
    if not deviation > 0:
        return 6
    return min(max(1 - math.floor(math.log10(deviation)), 3), 6)


def _rank_table(
    results: Sequence[ProblemResults],
    summaries: Sequence[Sequence[SamplerSummary]],
    samplers: Sequence[str],
    table: _Table,
) -> str:
    ranks = [{summary.sampler: summary.mean_rank for summary in group} for group in summaries]
    # Only a sampler that was run on every problem has a mean over them.
    by_sampler = {sampler: [rank.get(sampler, math.nan) for rank in ranks] for sampler in samplers}
    order = sorted(
        samplers, key=lambda sampler: np.nan_to_num(np.mean(by_sampler[sampler]), nan=99)
    )
    return table(
        ("sampler", *(result.facts.name for result in results), "all"),
        [
            [
                sampler,
                *map(_number, by_sampler[sampler]),
                _number(float(np.mean(by_sampler[sampler]))),
            ]
            for sampler in order
        ],
    )


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _versions(directory: Path) -> str:
    distinct = dict.fromkeys(
        ", ".join(f"{name} {version}" for name, version in session["versions"].items())
        for session in read_sessions(directory)
    )
    return "\n".join(f"Run with {versions}." for versions in distinct)

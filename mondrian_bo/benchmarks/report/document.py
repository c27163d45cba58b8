"""The report on a benchmark: tables as text and Markdown, and pictures of regret."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from mondrian_bo.benchmarks.harness.archive import Results, read_results
from mondrian_bo.benchmarks.report.curves import plot_regret, plot_score
from mondrian_bo.benchmarks.report.score_tables import score, score_sections
from mondrian_bo.benchmarks.report.summary import (
    ProblemResults,
    SamplerSummary,
    per_problem,
    summarize,
)
from mondrian_bo.benchmarks.report.text_table import to_markdown, to_text

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
"""Names of the columns of a problem's table."""

_LEGEND = (
    "Best noise-free value found, minimised: mean ± standard deviation over runs at the end, "
    "means at 25 % and 50 % of the trials. Hits: runs that end at the optimum, within the "
    "tolerance. Mean rank: among the samplers, per seed. Milliseconds: wall time "
    "of ask and tell on one thread. With several objectives the value is minus the hypervolume; "
    "with constraints it is that of feasible trials. If runs have different numbers of trials, the "
    "first ones of each count, as many as the shortest has."
)
"""Explanation of those columns."""

_NO_SCORE = "No score over all problems: the samplers share no seed on any problem."
"""What takes the place of the score."""

_Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]
"""A function that formats a header and rows as a table."""


def write_report(
    sources: Sequence[Path],
    out: Path,
    *,
    samplers: Sequence[str] | None = None,
    reference: str | None = None,
    half: str | None = None,
) -> str:
    """Write ``report.txt``, ``report.md``, one ``<problem>.png`` per problem and ``score.png``.

    The score comes first. It uses the problems and seeds that all samplers share, and is omitted
    if there is only one problem or sampler. If they share none, the report says so.

    Parameters
    ----------
    sources : sequence of Path
        Directories that ``mondrian-bo bench run`` wrote to, and archives. Where several hold a run
        with the same problem, sampler and seed, the last one counts.
    out : Path
        Where to write; created if needed.
    samplers : sequence of str, optional
        Samplers to compare, in this order; by default all.
    reference : str, optional
        The sampler that the others are tested against; by default "tpe" if present, else the first.
    half : {"development", "held-out"}, optional
        Report only the problems of this half; by default all.

    Returns
    -------
    str
        The report as text.

    Raises
    ------
    ValueError
        If the sources hold no such run, or none of one of the samplers, use one name for different
        problems, or the reference is not among the samplers.
    """
    finished = read_results(sources)
    known = sorted(
        {name for problem, name, _ in finished.runs if half in (None, finished.facts[problem].half)}
    )
    for name in samplers or ():
        if known and name not in known:
            raise ValueError(f"there is no run of {name!r}, but of {', '.join(known)}")
    results = per_problem(finished, samplers=samplers, half=half)
    summaries = [summarize(result) for result in results]
    found = sorted({summary.sampler for group in summaries for summary in group})
    compared = list(samplers or found)
    if reference is not None and reference not in compared:
        raise ValueError(f"the reference {reference!r} is none of {', '.join(compared)}")
    versions = _versions(finished)

    out.mkdir(parents=True, exist_ok=True)
    text, markdown = [], ["# Benchmark report"]
    overall = score(results, compared, reference) if len(results) > 1 else None
    if overall is not None:
        for section in score_sections(overall):
            body = [section.legend] if section.legend else []
            text += [section.title, *body, to_text(*section.table)]
            markdown += [f"## {section.title}", *body, to_markdown(*section.table)]
        plot_score(overall.paired, overall.samplers, out / "score.png")
        markdown.append("![score](score.png)")
    elif len(results) > 1 and len(compared) > 1:
        text.append(_NO_SCORE)
        markdown.append(_NO_SCORE)
    text.append(_LEGEND)
    markdown.append(_LEGEND)
    for result, group in zip(results, summaries, strict=True):
        title = _title(result)
        text += [title, _problem_table(group, to_text)]
        picture = f"{result.facts.name}.png"
        plot_regret(result, compared, out / picture)
        markdown += [f"## {title}", _problem_table(group, to_markdown), f"![regret]({picture})"]
    text.append(versions)
    markdown.append(versions)

    report = "\n\n".join(text) + "\n"
    (out / "report.txt").write_text(report, encoding="utf-8")
    (out / "report.md").write_text("\n\n".join(markdown) + "\n", encoding="utf-8")
    return report


def _title(result: ProblemResults) -> str:
    facts = result.facts
    kind = "optimum" if facts.optimum is not None else "best value of all runs"
    optimum = f"{kind} {result.optimum:.6g}"
    reference = f", reference {', '.join(f'{x:g}' for x in facts.reference)}"
    return (
        f"{facts.name}: {facts.description} ({optimum}, tolerance {facts.tolerance:g}"
        f"{reference if facts.reference else ''}, {result.n_trials} trials)"
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
    """Return the number of decimals that shows two digits of a deviation, from 3 to 6."""
    if not deviation > 0:
        return 6
    return min(max(1 - math.floor(math.log10(deviation)), 3), 6)


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _versions(results: Results) -> str:
    distinct = dict.fromkeys(
        ", ".join(f"{name} {version}" for name, version in session["versions"].items())
        for session in results.sessions
    )
    return "\n".join(f"Run with {versions}." for versions in distinct)

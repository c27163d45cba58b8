"""Cost of a suggestion (ask and tell) in an Optuna study in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import optuna

from mondrian_bo.benchmarks.suites.speed.clock import Cost, mean, typical
from mondrian_bo.benchmarks.suites.speed.growing_studies import GrowingStudies, Objective, floats
from mondrian_bo.benchmarks.suites.speed.rows import Limit, Row, time_row
from mondrian_bo.integrations.optuna.sampler import MondrianSampler
from mondrian_bo.surrogates.registry import SurrogateName

__all__ = ["ask_and_tell", "rows_of", "studies_of", "warm_up", "whole_study"]

_BASELINES: dict[str, Callable[[], optuna.samplers.BaseSampler]] = {
    "TPE": lambda: optuna.samplers.TPESampler(seed=0),
    "Random": lambda: optuna.samplers.RandomSampler(seed=0),
}
"""Makers of the samplers that ours is compared with, by name in the table."""


def ask_and_tell(
    n_trials: int,
    n_parameters: int = 10,
    n_timed: int = 50,
    below: float | None = None,
    surrogate: SurrogateName = "gaussian_process",
) -> list[Row]:
    """Measure the last trials of studies whose earlier ones are random.

    Parameters
    ----------
    n_trials : int
        Number of trials at the end.
    n_parameters : int, default=10
        Number of float parameters.
    n_timed : int, default=50
        Number of measured trials, ours and the baselines' in turns; the mean is reported.
    below : float, optional
        Our target in milliseconds.
    surrogate : str, default="gaussian_process"
        The surrogate of our sampler.

    Returns
    -------
    list of Row
        One row compared with TPE, one compared with random search.
    """
    studies = studies_of(partial(floats, n_parameters=n_parameters), surrogate)
    studies.fill(n_trials, n_timed)
    kind = "" if surrogate == "gaussian_process" else f'surrogate="{surrogate}": '
    name = f"{kind}ask + tell, {n_parameters} floats, at {n_trials:,} trials"
    return rows_of(name, studies.take_turns(n_timed), below)


def whole_study(n_trials: int, n_parameters: int = 10, below: float | None = None) -> list[Row]:
    """Measure whole studies: the mean over all trials includes rare expensive steps.

    Parameters
    ----------
    n_trials, n_parameters, below
        See :func:`ask_and_tell`.

    Returns
    -------
    list of Row
        One row, compared with TPE.
    """
    costs = studies_of(partial(floats, n_parameters=n_parameters)).take_turns(n_trials)
    name = f"ask + tell, {n_parameters} floats, mean over a study of {n_trials:,} trials"
    return rows_of(name, costs, below)[:1]


def warm_up(n_trials: int = 25) -> None:
    """Compile or load all measured code, with studies of so many trials."""
    for surrogate in ("gaussian_process", "forest"):
        studies_of(partial(floats, n_parameters=3), surrogate).take_turns(n_trials)


def studies_of(
    objective: Objective, surrogate: SurrogateName = "gaussian_process"
) -> GrowingStudies:
    """Return a study for each sampler. A user's study has one sampler, which knows its trials."""
    ours = MondrianSampler(seed=0, surrogate=surrogate)
    return GrowingStudies([ours, *(make() for make in _BASELINES.values())], objective)


def rows_of(name: str, costs: Sequence[Sequence[Cost]], below: float | None) -> list[Row]:
    """Return a row for each baseline, from the costs of each sampler's trials in seconds."""
    ours, *theirs = ([c.in_milliseconds() for c in one] for one in costs)
    details: dict[str, object] = {
        "ours_median": typical(ours)._asdict(),
        "ours_largest": max(c.cpu for c in ours),
        "trials_measured": len(ours),
    }
    rows: list[Row] = []
    for baseline, baseline_costs in zip(_BASELINES, theirs, strict=True):
        limit = Limit("ours", below) if below is not None and not rows else None
        more = {**details, "peer_median": typical(baseline_costs)._asdict()}
        row = time_row(
            name, mean(ours), baseline, mean(baseline_costs), unit="ms", limit=limit, details=more
        )
        rows.append(row)
    return rows

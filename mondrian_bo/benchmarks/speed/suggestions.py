"""Cost of a suggestion (ask and tell) in an Optuna study in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import optuna

from mondrian_bo.benchmarks.speed.clock import Cost, mean, typical
from mondrian_bo.benchmarks.speed.growing_studies import GrowingStudies, Objective, floats
from mondrian_bo.benchmarks.speed.rows import Limit, Row, time_row
from mondrian_bo.integrations.optuna.sampler import MondrianSampler

__all__ = ["ask_and_tell", "rows_of", "studies_of", "warm_up", "whole_study"]

_SAMPLERS: dict[str, Callable[[], optuna.samplers.BaseSampler]] = {
    "ours": lambda: MondrianSampler(seed=0),
    "TPE": lambda: optuna.samplers.TPESampler(seed=0),
    "Random": lambda: optuna.samplers.RandomSampler(seed=0),
}
"""Makers of the compared samplers by name in the table."""


def ask_and_tell(
    n_trials: int, n_parameters: int = 10, n_timed: int = 50, below: float | None = None
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

    Returns
    -------
    list of Row
        One row compared with TPE, one compared with random search.
    """
    studies = studies_of(partial(floats, n_parameters=n_parameters))
    studies.fill(n_trials, n_timed)
    name = f"ask + tell, {n_parameters} floats, at {n_trials:,} trials"
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
    """Compile or load all measured code, with a study of so many trials."""
    studies_of(partial(floats, n_parameters=3)).take_turns(n_trials)


def studies_of(objective: Objective) -> GrowingStudies:
    """Return a study for each sampler. A user's study has one sampler, which knows its trials."""
    return GrowingStudies([make() for make in _SAMPLERS.values()], objective)


def rows_of(name: str, costs: Sequence[Sequence[Cost]], below: float | None) -> list[Row]:
    """Return a row for each baseline, from the costs of each sampler's trials in seconds."""
    ours, *theirs = ([c.in_milliseconds() for c in one] for one in costs)
    details: dict[str, object] = {
        "ours_median": typical(ours)._asdict(),
        "ours_largest": max(c.cpu for c in ours),
        "trials_measured": len(ours),
    }
    rows: list[Row] = []
    for baseline, baseline_costs in zip(list(_SAMPLERS)[1:], theirs, strict=True):
        limit = Limit("ours", below) if below is not None and not rows else None
        more = {**details, "peer_median": typical(baseline_costs)._asdict()}
        row = time_row(
            name, mean(ours), baseline, mean(baseline_costs), unit="ms", limit=limit, details=more
        )
        rows.append(row)
    return rows

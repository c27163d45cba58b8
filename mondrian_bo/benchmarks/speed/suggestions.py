"""Cost of a suggestion (ask and tell) in an Optuna study in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import optuna

from mondrian_bo.benchmarks.speed.clock import Cost, mean, typical
from mondrian_bo.benchmarks.speed.growing_studies import GrowingStudies, Objective, floats
from mondrian_bo.benchmarks.speed.rows import Limit, Row, time_row
from mondrian_bo.integrations.optuna.sampler import MondrianSampler

__all__ = ["WIDE_SPACES", "ask_and_tell", "whole_study", "wide_space"]

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
    studies = _studies(partial(floats, n_parameters=n_parameters))
    studies.fill(n_trials, n_timed)
    name = f"ask + tell, {n_parameters} floats, at {n_trials:,} trials"
    return _rows(name, studies.take_turns(n_timed), below)


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
    costs = _studies(partial(floats, n_parameters=n_parameters)).take_turns(n_trials)
    name = f"ask + tell, {n_parameters} floats, mean over a study of {n_trials:,} trials"
    return _rows(name, costs, below)[:1]


def _branches(trial: optuna.Trial, n_branches: int) -> float:
    """Return the value of a branch with two parameters of its own."""
    branch = trial.suggest_categorical("branch", range(n_branches))
    x, y = (trial.suggest_float(f"{axis}{branch}", 0.0, 1.0) for axis in "xy")
    return (x - 0.3) ** 2 + (y - 0.7) ** 2 + 0.1 * (branch % 10)


def _own_parameter(trial: optuna.Trial, n_parameters: int) -> float:
    """Return a value that depends on a common parameter and on one that the trial alone has."""
    own = trial.suggest_float(f"x{trial.number % n_parameters}", 0.0, 1.0)
    return (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2 + (own - 0.5) ** 2


def _many_choices(trial: optuna.Trial, n_choices: int) -> float:
    choice = trial.suggest_categorical("choice", range(n_choices))
    return 0.01 * (choice % 100) + (trial.suggest_float("x", 0.0, 1.0) - 0.2) ** 2


WIDE_SPACES: dict[str, Objective] = {
    "200 branches": partial(_branches, n_branches=200),
    "2,000 branches": partial(_branches, n_branches=2_000),
    "300 parameters, an own one in each trial": partial(_own_parameter, n_parameters=300),
    "a choice among 5,000": partial(_many_choices, n_choices=5_000),
}
"""Objectives with many parameters or choices, most of which a trial does not have."""


def wide_space(
    space: str, n_trials: int = 220, n_timed: int = 40, below: float | None = None
) -> list[Row]:
    """Measure the last trials of a study in one of the `WIDE_SPACES`, all of which are suggested.

    The other parameters are those of :func:`ask_and_tell`. The mean includes the trials' share of
    the rebuilds. There is one row, compared with TPE.
    """
    costs = _studies(WIDE_SPACES[space]).take_turns(n_trials)
    name = f"ask + tell, {space}, at {n_trials} trials"
    return _rows(name, [one[-n_timed:] for one in costs], below)[:1]


def warm_up() -> None:
    """Compile or load all measured code."""
    _studies(partial(floats, n_parameters=3)).take_turns(25)


def _studies(objective: Objective) -> GrowingStudies:
    """Return a study for each sampler. A user's study has one sampler, which knows its trials."""
    return GrowingStudies([make() for make in _SAMPLERS.values()], objective)


def _rows(name: str, costs: Sequence[Sequence[Cost]], below: float | None) -> list[Row]:
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

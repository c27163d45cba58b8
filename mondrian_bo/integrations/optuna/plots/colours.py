"""Colours of all plots, and how small the dots of many trials are."""

from __future__ import annotations

import math

BLUE, ORANGE, GREY, GREEN = "#1f77b4", "#d95f02", "#888888", "#2a9d5c"
"""Colours of predictions, of what is best, of trials, and of running trials."""

COLOURS = {
    "complete": BLUE,
    "pruned": GREY,
    "failed": "#bbbbbb",
    "running": GREEN,
    "best": ORANGE,
}
"""Colours of learning curves by what became of the trial."""

_MOST_FULL = 500
"""Largest number of trials with dots of full size, our choice: more hide what is behind them."""


def scale_of(n_trials: int) -> float:
    """Return the size of each dot of many trials, by that of a dot of few trials.

    The dots together cover the same area for any larger number of trials.
    """
    return min(1.0, math.sqrt(_MOST_FULL / max(n_trials, 1)))


def opacity_of(n_trials: int) -> float:
    """Return the opacity of each dot of many trials, by that of one of few trials."""
    return 0.4 + 0.6 * scale_of(n_trials)

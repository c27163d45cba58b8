"""How small and transparent the dots of many trials are."""

from __future__ import annotations

import math

_MOST_FULL = 500
"""Largest number of trials with dots of full size, our choice: more hide what is behind them."""


def dot_scale(n_trials: int) -> float:
    """Return the size of each dot of many trials, by that of a dot of few trials.

    The dots together cover the same area for any larger number of trials.
    """
    return min(1.0, math.sqrt(_MOST_FULL / max(n_trials, 1)))


def dot_opacity(n_trials: int) -> float:
    """Return the opacity of each dot of many trials, by that of one of few trials."""
    return 0.4 + 0.6 * dot_scale(n_trials)

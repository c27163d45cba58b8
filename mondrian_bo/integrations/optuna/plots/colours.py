"""Colours of all plots."""

from __future__ import annotations

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

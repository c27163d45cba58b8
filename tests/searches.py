"""Searches of tests."""

from __future__ import annotations


def run(optimizer, objective, n_trials):
    """Ask for trials one by one and tell their values; return the points."""
    asked = []
    for _ in range(n_trials):
        params = optimizer.ask()
        optimizer.tell(params, objective(params))
        asked.append(params)
    return asked

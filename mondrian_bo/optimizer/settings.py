"""The settings that the optimizer shares with its adapters."""

from __future__ import annotations

from mondrian_bo.acquisitions import Acquisition
from mondrian_bo.optimizer.portfolio import Portfolio, get_portfolio
from mondrian_bo.surrogates.registry import SURROGATES


def check_settings(
    surrogate: str,
    acquisition: str | Acquisition | Portfolio,
    n_startup_trials: int,
    n_estimators: int | None,
    n_candidates: int,
) -> None:
    """Check the settings that :class:`MondrianOptimizer` and its adapters share.

    Raises
    ------
    ValueError
        If one of them is not as :class:`MondrianOptimizer` describes.
    """
    if surrogate not in SURROGATES:
        raise ValueError(f"`surrogate` must be one of {list(SURROGATES)}, got {surrogate!r}.")
    get_portfolio(surrogate, acquisition)
    for name, number, smallest in (
        ("n_startup_trials", n_startup_trials, 0),
        ("n_estimators", 1 if n_estimators is None else n_estimators, 1),
        ("n_candidates", n_candidates, 1),
    ):
        if not isinstance(number, int) or isinstance(number, bool) or number < smallest:
            raise ValueError(f"`{name}` must be an integer >= {smallest}, got {number!r}.")

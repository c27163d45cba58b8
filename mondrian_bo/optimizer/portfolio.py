"""What a search chooses its trials with: settings of the model, each with its acquisitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mondrian_bo.acquisitions import (
    Acquisition,
    LogExpectedImprovement,
    UpperConfidenceBound,
    get_acquisition,
)


@dataclass(frozen=True)
class Arm:
    """A setting of the model and the acquisitions that go with it.

    Attributes
    ----------
    acquisitions : sequence of Acquisition
        One of them is drawn for each trial.
    power : bool, default=True
        Whether values are transformed to be as Gaussian as they can.
    options : mapping
        Arguments of the surrogate.
    """

    acquisitions: Sequence[Acquisition]
    power: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Portfolio:
    """Arms, of which one is drawn for each trial.

    Attributes
    ----------
    arms : tuple of Arm
        The arms.
    restarts : bool, default=False
        Whether to start afresh where the search has collapsed on its incumbent.
    """

    arms: tuple[Arm, ...]
    restarts: bool = False


_WIDE = (UpperConfidenceBound(), LogExpectedImprovement(0.01), LogExpectedImprovement(0.1))
"""One rule alone keeps polishing one basin."""

_DEFAULT = Portfolio((Arm(_WIDE),))

_PORTFOLIOS = {"gaussian_process": Portfolio((Arm(_WIDE),), restarts=True)}


def get_portfolio(surrogate: str, acquisition: str | Acquisition | Portfolio) -> Portfolio:
    """Return what a search with this surrogate draws from.

    Parameters
    ----------
    surrogate : str
        Name of the surrogate.
    acquisition : str, Acquisition or Portfolio
        "auto" is the surrogate's own portfolio; any other acquisition takes the place of those of
        its arms, without restarts; a portfolio is returned as it is.

    Raises
    ------
    ValueError
        If the acquisition is none.
    """
    if isinstance(acquisition, Portfolio):
        return acquisition
    portfolio = _PORTFOLIOS.get(surrogate, _DEFAULT)
    if acquisition == "auto":
        return portfolio
    alone = (get_acquisition(acquisition),)
    return Portfolio(tuple(replace(arm, acquisitions=alone) for arm in portfolio.arms))

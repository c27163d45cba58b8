"""What choices of lifetimes share: checks, and finding the position of a lifetime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mondrian_bo.shared.array_types import FloatArray


def check_criterion(criterion: str, known: Sequence[str]) -> None:
    """Check the word that says what a choice of lifetimes compares.

    Raises
    ------
    ValueError
        If it is none of the known ones.
    """
    if criterion not in known:
        raise ValueError(f"criterion must be one of {', '.join(known)}; got {criterion!r}")


def check_lifetimes(lifetimes: ArrayLike, n_dimensions: int) -> FloatArray:
    """Return the lifetimes of all dimensions as a float64 array.

    Raises
    ------
    ValueError
        If they are not finite and at least 0, of shape (n_dimensions,).
    """
    values = np.asarray(lifetimes, dtype=np.float64)
    if values.shape != (n_dimensions,):
        raise ValueError(
            f"lifetimes must have shape ({n_dimensions},), one for each dimension; "
            f"got shape {values.shape}"
        )
    if not np.all((values >= 0.0) & (values < np.inf)):
        raise ValueError(f"lifetimes must be finite and at least 0, got {values.tolist()}")
    return values


class PiecewiseByLifetime:
    """Values that are constant from ``lifetimes[i]`` until before ``lifetimes[i + 1]``.

    From the last lifetime to `max_lifetime` they are constant too.
    """

    lifetimes: FloatArray
    max_lifetime: float

    def index(self, lifetime: float) -> int:
        """Return the position of the values at a lifetime.

        Raises
        ------
        ValueError
            If the lifetime is not in [0, max_lifetime].
        """
        if not 0.0 <= lifetime <= self.max_lifetime:
            raise ValueError(f"lifetime must be in [0, {self.max_lifetime}], got {lifetime}")
        return int(np.searchsorted(self.lifetimes, lifetime, side="right")) - 1

    def _middle(self, index: int) -> float:
        """Return the middle of the interval of lifetimes at a position."""
        end = self.lifetimes[index + 1] if index + 1 < len(self) else self.max_lifetime
        return float(0.5 * (self.lifetimes[index] + end))

    def __len__(self) -> int:
        return len(self.lifetimes)

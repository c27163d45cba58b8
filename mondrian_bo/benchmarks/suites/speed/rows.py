"""Rows of the speed table: our cost, a baseline's cost, and the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from mondrian_bo.benchmarks.suites.speed.clock import Cost

__all__ = ["HEADER", "LEGEND", "Limit", "Row", "cells", "record", "time_row"]

HEADER = ("what", "ours", "baseline", "ratio", "target", "reached?")
"""Names of the table's columns."""

LEGEND = (
    "One thread, after warm-up. Times are CPU times, with wall times in brackets; ours and the "
    "baseline took turns. Ratio: the baseline's cost over ours, so above 1 we are cheaper."
)
"""What stands above the table."""

_SAVED_NAMES = {"baseline_name": "peer_name", "baseline": "peer", "baseline_wall": "peer_wall"}
"""Keys of ``speed.json`` and ``streams.json`` that differ from the attributes of `Row`: files of
earlier versions have them, and can be compared with new ones."""


@dataclass(frozen=True)
class Limit:
    """The target of a row.

    Attributes
    ----------
    kind : {"ratio", "ours"}
        Whether the ratio must be at least `value`, or our cost less than it.
    value : float
        The limit, in the unit of the row if `kind` is "ours".
    """

    kind: Literal["ratio", "ours"]
    value: float


@dataclass(frozen=True)
class Row:
    """One line of the table. Every cost is better when smaller.

    Attributes
    ----------
    name : str
        What was measured.
    unit : str
        Unit of the costs: "s", "ms", "B/point" or "B/trial".
    ours : float
        Our cost; CPU time where it is a time.
    ours_wall : float or None, default=None
        Our wall time.
    baseline_name : str, default=""
        The library or option that ours is compared with.
    baseline, baseline_wall : float or None, default=None
        The baseline's cost and wall time; None if it was not measured.
    limit : Limit or None, default=None
        The target.
    details : dict
        Further numbers, for ``speed.json`` only.
    """

    name: str
    unit: str
    ours: float
    ours_wall: float | None = None
    baseline_name: str = ""
    baseline: float | None = None
    baseline_wall: float | None = None
    limit: Limit | None = None
    details: dict[str, object] = field(default_factory=dict, kw_only=True)

    @property
    def ratio(self) -> float | None:
        """The baseline's cost over ours."""
        return None if self.baseline is None else self.baseline / self.ours

    @property
    def reached(self) -> bool | None:
        """Whether the target is reached; None without one, or if the baseline was not measured."""
        if self.limit is None:
            return None
        if self.limit.kind == "ours":
            return self.ours < self.limit.value
        return None if self.ratio is None else self.ratio >= self.limit.value


def time_row(
    name: str,
    ours: Cost,
    baseline_name: str = "",
    baseline: Cost | None = None,
    *,
    unit: Literal["s", "ms"] = "s",
    limit: Limit | None = None,
    details: dict[str, object] | None = None,
) -> Row:
    """Return the row of a measured time; parameters are those of `Row`."""
    cpu, wall = baseline if baseline is not None else (None, None)
    return Row(name, unit, *ours, baseline_name, cpu, wall, limit, details=details or {})


def cells(row: Row) -> list[str]:
    """Return the cells of a row, in the order of `HEADER`."""
    baseline = "" if not row.baseline_name else f"{row.baseline_name}: not measured"
    if row.baseline is not None:
        baseline = f"{row.baseline_name} {_cost(row.baseline, row.baseline_wall, row.unit)}"
    limit = ""
    if row.limit is not None:
        number = f"{row.limit.value:,g}"
        limit = f"≥ {number}x" if row.limit.kind == "ratio" else f"< {number} {row.unit}"
    return [
        row.name,
        _cost(row.ours, row.ours_wall, row.unit),
        baseline,
        "" if row.ratio is None else f"{_digits(row.ratio)}x",
        limit,
        {True: "yes", False: "no", None: "" if row.limit is None else "unknown"}[row.reached],
    ]


def record(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return rows as JSON objects, with ratio and verdict."""
    return [
        {_SAVED_NAMES.get(key, key): value for key, value in asdict(row).items()}
        | {"ratio": row.ratio, "reached": row.reached}
        for row in rows
    ]


def _cost(value: float, wall: float | None, unit: str) -> str:
    in_brackets = "" if wall is None else f" ({_digits(wall)})"
    return f"{_digits(value)}{in_brackets} {unit}"


def _digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{value:,.0f}" if value >= 100.0 else f"{value:#.3g}"

"""Rows of the speed table: what we need, what the peer needs, and what was aimed at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from mondrian_bo.benchmarks.speed.clock import Cost

__all__ = ["HEADER", "LEGEND", "Limit", "Row", "cells", "record", "time_row"]

HEADER = ("what", "ours", "peer", "ratio", "target", "reached?")
LEGEND = (
    "One thread, after warm-up. Times are CPU times, with wall times in brackets; the peer ran in "
    "turns with ours. Ratio: the peer's cost over ours, so above 1 we are cheaper."
)


@dataclass(frozen=True)
class Limit:
    """What a row aims at.

    Attributes
    ----------
    kind : {"ratio", "ours"}
        Whether the ratio is to be at least `value`, or our cost less than it.
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
        Unit of the costs: "s", "ms" or "B/point".
    ours : float
        Our cost; CPU time where it is a time.
    ours_wall : float or None, default=None
        Our wall time.
    peer_name : str, default=""
        Whom we compare with.
    peer, peer_wall : float or None, default=None
        The peer's cost; None if it was not measured.
    limit : Limit or None, default=None
        What is aimed at.
    details : dict
        Further numbers, for ``speed.json`` only.
    """

    name: str
    unit: str
    ours: float
    ours_wall: float | None = None
    peer_name: str = ""
    peer: float | None = None
    peer_wall: float | None = None
    limit: Limit | None = None
    details: dict[str, object] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """The peer's cost over ours."""
        return None if self.peer is None else self.peer / self.ours

    @property
    def reached(self) -> bool | None:
        """Whether the target is reached; None without one, or if the peer was not measured."""
        if self.limit is None:
            return None
        if self.limit.kind == "ours":
            return self.ours < self.limit.value
        return None if self.ratio is None else self.ratio >= self.limit.value


def time_row(
    name: str,
    ours: Cost,
    peer_name: str = "",
    peer: Cost | None = None,
    *,
    unit: Literal["s", "ms"] = "s",
    limit: Limit | None = None,
    details: dict[str, object] | None = None,
) -> Row:
    """Return the row of what took some time; parameters are those of `Row`."""
    cpu, wall = peer if peer is not None else (None, None)
    return Row(name, unit, *ours, peer_name, cpu, wall, limit, details or {})


def cells(row: Row) -> list[str]:
    """Return the cells of a row, in the order of `HEADER`."""
    peer = "" if not row.peer_name else f"{row.peer_name}: not measured"
    if row.peer is not None:
        peer = f"{row.peer_name} {_cost(row.peer, row.peer_wall, row.unit)}"
    limit = ""
    if row.limit is not None:
        number = f"{row.limit.value:,g}"
        limit = f"≥ {number}x" if row.limit.kind == "ratio" else f"< {number} {row.unit}"
    return [
        row.name,
        _cost(row.ours, row.ours_wall, row.unit),
        peer,
        "" if row.ratio is None else f"{_digits(row.ratio)}x",
        limit,
        {True: "yes", False: "no", None: "" if row.limit is None else "unknown"}[row.reached],
    ]


def record(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return rows as JSON objects, with ratio and verdict."""
    return [{**asdict(row), "ratio": row.ratio, "reached": row.reached} for row in rows]


def _cost(value: float, wall: float | None, unit: str) -> str:
    in_brackets = "" if wall is None else f" ({_digits(wall)})"
    return f"{_digits(value)}{in_brackets} {unit}"


def _digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{value:,.0f}" if value >= 100.0 else f"{value:#.3g}"

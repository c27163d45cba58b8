"""Tables of strings, aligned for a terminal or in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

__all__ = ["publish", "to_markdown", "to_text"]


def to_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for a terminal: the first column left-aligned, the others right-aligned."""
    widths = _widths(header, rows)
    rule = ["-" * width for width in widths]
    return "\n".join("  ".join(_pad(row, widths)).rstrip() for row in (header, rule, *rows))


def to_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with the alignment of `to_text`."""
    rule = ["---", *("---:" for _ in header[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


def publish(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a table in Markdown to a file, and print it for a terminal."""
    path.write_text(to_markdown(header, rows) + "\n", encoding="utf-8")
    print(to_text(header, rows))


def _widths(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*chain([header], rows), strict=True)]


def _pad(row: Sequence[str], widths: Iterable[int]) -> Iterable[str]:
    for position, (cell, width) in enumerate(zip(row, widths, strict=True)):
        yield cell.ljust(width) if position == 0 else cell.rjust(width)

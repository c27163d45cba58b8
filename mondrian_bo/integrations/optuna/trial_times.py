"""When trials ran, in local time without a zone, as Optuna writes it; added trials may differ."""

from __future__ import annotations

from datetime import datetime


def local_time(moment: datetime | None) -> datetime:
    """Return a moment in local time without a zone; the first of all moments for None."""
    if moment is None:
        return datetime.min
    return moment if moment.tzinfo is None else moment.astimezone().replace(tzinfo=None)

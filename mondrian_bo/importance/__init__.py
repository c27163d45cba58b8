"""Functional analysis of variance of models over a search space, without any framework."""

from __future__ import annotations

from mondrian_bo.importance.decomposition import Decomposition
from mondrian_bo.importance.models import decompose

__all__ = ["Decomposition", "decompose"]

"""Surrogates: models that learn (X, y) and predict with honest uncertainty."""

from __future__ import annotations

from mondrian_bo.surrogates.forest import MondrianForestRegressor

__all__ = ["MondrianForestRegressor"]

"""Surrogates: models that learn (X, y) and predict with honest uncertainty.

The estimators are imported on first use: the optimizer needs none of them, nor scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mondrian_bo.surrogates.amf_classifier import AMFClassifier
    from mondrian_bo.surrogates.amf_regressor import AMFRegressor
    from mondrian_bo.surrogates.classifier import MondrianForestClassifier
    from mondrian_bo.surrogates.dummy import OnlineDummyClassifier, OnlineDummyRegressor
    from mondrian_bo.surrogates.forest import MondrianForestRegressor

__all__ = [
    "AMFClassifier",
    "AMFRegressor",
    "MondrianForestClassifier",
    "MondrianForestRegressor",
    "OnlineDummyClassifier",
    "OnlineDummyRegressor",
]

_HOMES = {
    "AMFClassifier": "amf_classifier",
    "AMFRegressor": "amf_regressor",
    "MondrianForestClassifier": "classifier",
    "MondrianForestRegressor": "forest",
    "OnlineDummyClassifier": "dummy",
    "OnlineDummyRegressor": "dummy",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""The online forests as estimators of river (https://riverml.xyz), which must be installed."""

from mondrian_bo.integrations.river.estimators import RiverClassifier, RiverRegressor

__all__ = ["RiverClassifier", "RiverRegressor"]

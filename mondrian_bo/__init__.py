"""mondrian-bo: Bayesian optimisation with Gaussian processes and Mondrian forests.

The names below are imported on first use, so that ``import mondrian_bo`` stays light and compiles
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mondrian_bo.cache_folder import adapt_storage, ensure_cache_folder
from mondrian_bo.lazy_names import lazy_names
from mondrian_bo.moved import install
from mondrian_bo.version import __version__

if TYPE_CHECKING:
    from mondrian_bo.integrations.optuna.importance import MondrianImportanceEvaluator
    from mondrian_bo.integrations.optuna.pruner import MondrianPruner
    from mondrian_bo.integrations.optuna.robust_best import robust_best
    from mondrian_bo.integrations.optuna.sampler import MondrianSampler
    from mondrian_bo.integrations.optuna.suggestions.study_fidelity import best_at_target
    from mondrian_bo.integrations.optuna.terminator import MondrianTerminator
    from mondrian_bo.optimizer.optimizer import MondrianOptimizer
    from mondrian_bo.search_space import Categorical, Condition, Float, Int, SearchSpace

__all__ = [
    "Categorical",
    "Condition",
    "Float",
    "Int",
    "MondrianImportanceEvaluator",
    "MondrianOptimizer",
    "MondrianPruner",
    "MondrianSampler",
    "MondrianTerminator",
    "SearchSpace",
    "__version__",
    "best_at_target",
    "robust_best",
]

_HOMES = {
    "Categorical": "mondrian_bo.search_space",
    "Condition": "mondrian_bo.search_space",
    "Float": "mondrian_bo.search_space",
    "Int": "mondrian_bo.search_space",
    "MondrianImportanceEvaluator": "mondrian_bo.integrations.optuna.importance",
    "MondrianOptimizer": "mondrian_bo.optimizer.optimizer",
    "MondrianPruner": "mondrian_bo.integrations.optuna.pruner",
    "MondrianSampler": "mondrian_bo.integrations.optuna.sampler",
    "MondrianTerminator": "mondrian_bo.integrations.optuna.terminator",
    "SearchSpace": "mondrian_bo.search_space",
    "best_at_target": "mondrian_bo.integrations.optuna.suggestions.study_fidelity",
    "robust_best": "mondrian_bo.integrations.optuna.robust_best",
}
"""The module that defines each lazy name."""

__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)

ensure_cache_folder()
adapt_storage()
install()

"""Imports of public names from modules that have other names today, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "mondrian_bo.known_noise": "mondrian_bo.optimizer.models.known_noise",
    "mondrian_bo.objective_model": "mondrian_bo.optimizer.models.outcome_model",
    "mondrian_bo.outcomes": "mondrian_bo.optimizer.models.outcome_transform",
    "mondrian_bo.portfolio": "mondrian_bo.optimizer.search.portfolio",
    "mondrian_bo.optimizer.portfolio": "mondrian_bo.optimizer.search.portfolio",
    "mondrian_bo.benchmarks.archive": "mondrian_bo.benchmarks.harness.archive",
    "mondrian_bo.benchmarks.results": "mondrian_bo.benchmarks.harness.results",
    "mondrian_bo.benchmarks.runner": "mondrian_bo.benchmarks.harness.runner",
    "mondrian_bo.benchmarks.table3": "mondrian_bo.benchmarks.suites.table3",
    "mondrian_bo.acquisitions.ei": "mondrian_bo.acquisitions.expected_improvement",
    "mondrian_bo.acquisitions.log_ei": "mondrian_bo.acquisitions.log_expected_improvement",
    "mondrian_bo.acquisitions.pi": "mondrian_bo.acquisitions.probability_of_improvement",
    "mondrian_bo.acquisitions.ucb": "mondrian_bo.acquisitions.upper_confidence_bound",
    "mondrian_bo.surrogates.amf_classifier": "mondrian_bo.surrogates.amf.classifier",
    "mondrian_bo.surrogates.amf_regressor": "mondrian_bo.surrogates.amf.regressor",
    "mondrian_bo.surrogates.classifier": "mondrian_bo.surrogates.mondrian_forest.classifier",
    "mondrian_bo.surrogates.dummy": "mondrian_bo.surrogates.estimators.dummy",
    "mondrian_bo.surrogates.forest": "mondrian_bo.surrogates.mondrian_forest.regressor",
    "mondrian_bo.surrogates.mixture": "mondrian_bo.surrogates.shared.mixture",
    "mondrian_bo.surrogates.mondrian_kernel.fourier": (
        "mondrian_bo.surrogates.mondrian_kernel.baseline_features"
    ),
    "mondrian_bo.surrogates.mondrian_kernel.random_binning": (
        "mondrian_bo.surrogates.mondrian_kernel.baseline_features"
    ),
    "mondrian_bo.surrogates.mondrian_kernel.lifetime_path": (
        "mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path"
    ),
    "mondrian_bo.surrogates.mondrian_kernel.sgd_path": (
        "mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.sgd_path"
    ),
    "mondrian_bo.surrogates.partition_kernels.gaussian_process": (
        "mondrian_bo.surrogates.partition_kernels.regressor"
    ),
    "mondrian_bo.integrations.optuna.reading": "mondrian_bo.integrations.optuna.readable_sampler",
    "mondrian_bo.integrations.optuna.earlier_studies": (
        "mondrian_bo.integrations.optuna.suggestions.earlier_studies"
    ),
    "mondrian_bo.integrations.optuna.study_fidelity": (
        "mondrian_bo.integrations.optuna.suggestions.study_fidelity"
    ),
    "mondrian_bo.surrogates.partition_kernels.svm": (
        "mondrian_bo.surrogates.partition_kernels.classifier"
    ),
}
"""Former name and present name of each module."""


class MovedModuleFinder(MetaPathFinder, Loader):
    """Finds a module under its former name, and warns."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of a moved module; None for all others."""
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of the present name in the place of the former one."""
        present = MOVED[module.__name__]
        # Level 2 is the import statement: frames of the import system do not count.
        warnings.warn(f"{module.__name__} is now {present}.", DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = import_module(present)


def install() -> None:
    """Let the import system find moved modules, after all others."""
    if not any(isinstance(finder, MovedModuleFinder) for finder in sys.meta_path):
        sys.meta_path.append(MovedModuleFinder())

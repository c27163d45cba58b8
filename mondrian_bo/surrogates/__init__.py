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
    from mondrian_bo.surrogates.density.classifier import MondrianDensityClassifier
    from mondrian_bo.surrogates.density.estimator import MondrianForestDensity
    from mondrian_bo.surrogates.dummy import OnlineDummyClassifier, OnlineDummyRegressor
    from mondrian_bo.surrogates.forest import MondrianForestRegressor
    from mondrian_bo.surrogates.mondrian_grid.lifetime_search import (
        SPSA,
        AskTellSearch,
        Greedy,
        search_lifetimes,
    )
    from mondrian_bo.surrogates.mondrian_grid.regressor import MondrianGridRegressor
    from mondrian_bo.surrogates.mondrian_kernel.classifier import MondrianKernelClassifier
    from mondrian_bo.surrogates.mondrian_kernel.features import MondrianFeatures
    from mondrian_bo.surrogates.mondrian_kernel.fourier import LaplaceFourierFeatures
    from mondrian_bo.surrogates.mondrian_kernel.laplace import LaplaceKernel
    from mondrian_bo.surrogates.mondrian_kernel.lifetime_posterior import lifetime_posterior
    from mondrian_bo.surrogates.mondrian_kernel.mixture_regressor import (
        MondrianKernelMixtureRegressor,
    )
    from mondrian_bo.surrogates.mondrian_kernel.random_binning import RandomBinningFeatures
    from mondrian_bo.surrogates.mondrian_kernel.regressor import MondrianKernelRegressor
    from mondrian_bo.surrogates.mondrian_kernel.sgd_path import sgd_lifetime_path
    from mondrian_bo.surrogates.mondrian_kernel.support_vector_regressor import MondrianKernelSVR
    from mondrian_bo.surrogates.partition_kernels.fast_cluster_kernel import FastClusterKernel
    from mondrian_bo.surrogates.partition_kernels.gaussian_process import (
        PartitionGaussianProcessRegressor,
    )
    from mondrian_bo.surrogates.partition_kernels.kernel_pca import PartitionKernelPCA
    from mondrian_bo.surrogates.partition_kernels.membership_kernel import MembershipKernel
    from mondrian_bo.surrogates.partition_kernels.random_forest_kernel import RandomForestKernel
    from mondrian_bo.surrogates.partition_kernels.random_partition_kernel import (
        RandomPartitionKernel,
    )
    from mondrian_bo.surrogates.partition_kernels.svm import PartitionSVC

__all__ = [
    "SPSA",
    "AMFClassifier",
    "AMFRegressor",
    "AskTellSearch",
    "FastClusterKernel",
    "Greedy",
    "LaplaceFourierFeatures",
    "LaplaceKernel",
    "MembershipKernel",
    "MondrianDensityClassifier",
    "MondrianFeatures",
    "MondrianForestClassifier",
    "MondrianForestDensity",
    "MondrianForestRegressor",
    "MondrianGridRegressor",
    "MondrianKernelClassifier",
    "MondrianKernelMixtureRegressor",
    "MondrianKernelRegressor",
    "MondrianKernelSVR",
    "OnlineDummyClassifier",
    "OnlineDummyRegressor",
    "PartitionGaussianProcessRegressor",
    "PartitionKernelPCA",
    "PartitionSVC",
    "RandomBinningFeatures",
    "RandomForestKernel",
    "RandomPartitionKernel",
    "lifetime_posterior",
    "search_lifetimes",
    "sgd_lifetime_path",
]

_HOMES = {
    "AMFClassifier": "amf_classifier",
    "AMFRegressor": "amf_regressor",
    "AskTellSearch": "mondrian_grid.lifetime_search",
    "FastClusterKernel": "partition_kernels.fast_cluster_kernel",
    "Greedy": "mondrian_grid.lifetime_search",
    "LaplaceFourierFeatures": "mondrian_kernel.fourier",
    "LaplaceKernel": "mondrian_kernel.laplace",
    "MembershipKernel": "partition_kernels.membership_kernel",
    "MondrianDensityClassifier": "density.classifier",
    "MondrianFeatures": "mondrian_kernel.features",
    "MondrianForestClassifier": "classifier",
    "MondrianForestDensity": "density.estimator",
    "MondrianForestRegressor": "forest",
    "MondrianGridRegressor": "mondrian_grid.regressor",
    "MondrianKernelClassifier": "mondrian_kernel.classifier",
    "MondrianKernelMixtureRegressor": "mondrian_kernel.mixture_regressor",
    "MondrianKernelRegressor": "mondrian_kernel.regressor",
    "MondrianKernelSVR": "mondrian_kernel.support_vector_regressor",
    "OnlineDummyClassifier": "dummy",
    "OnlineDummyRegressor": "dummy",
    "PartitionGaussianProcessRegressor": "partition_kernels.gaussian_process",
    "PartitionKernelPCA": "partition_kernels.kernel_pca",
    "PartitionSVC": "partition_kernels.svm",
    "RandomBinningFeatures": "mondrian_kernel.random_binning",
    "RandomForestKernel": "partition_kernels.random_forest_kernel",
    "RandomPartitionKernel": "partition_kernels.random_partition_kernel",
    "SPSA": "mondrian_grid.lifetime_search",
    "lifetime_posterior": "mondrian_kernel.lifetime_posterior",
    "search_lifetimes": "mondrian_grid.lifetime_search",
    "sgd_lifetime_path": "mondrian_kernel.sgd_path",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

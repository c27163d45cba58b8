"""Surrogates: models that learn (X, y) and predict with calibrated uncertainty.

Estimators are imported on first use. The optimizer needs none of them, nor scikit-learn. Keys such
as Balog2016 are those of docs/papers.md. Fitted estimators have the attributes of scikit-learn's:
`n_features_in_`, and `feature_names_in_` if the first data had string column names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mondrian_bo.lazy_names import lazy_names

if TYPE_CHECKING:
    from mondrian_bo.surrogates.amf.classifier import AMFClassifier
    from mondrian_bo.surrogates.amf.regressor import AMFRegressor
    from mondrian_bo.surrogates.density.classifier import MondrianDensityClassifier
    from mondrian_bo.surrogates.density.estimator import MondrianForestDensity
    from mondrian_bo.surrogates.estimators.dummy import OnlineDummyClassifier, OnlineDummyRegressor
    from mondrian_bo.surrogates.gaussian_process_forest.regressor import (
        GaussianProcessForestRegressor,
    )
    from mondrian_bo.surrogates.mondrian_forest.classifier import MondrianForestClassifier
    from mondrian_bo.surrogates.mondrian_forest.regressor import MondrianForestRegressor
    from mondrian_bo.surrogates.mondrian_grid.lifetime_search import (
        SPSA,
        AskTellSearch,
        Greedy,
        search_lifetimes,
    )
    from mondrian_bo.surrogates.mondrian_grid.regressor import MondrianGridRegressor
    from mondrian_bo.surrogates.mondrian_kernel.baseline_features import (
        LaplaceFourierFeatures,
        RandomBinningFeatures,
    )
    from mondrian_bo.surrogates.mondrian_kernel.classifier import MondrianKernelClassifier
    from mondrian_bo.surrogates.mondrian_kernel.features import MondrianFeatures
    from mondrian_bo.surrogates.mondrian_kernel.laplace import LaplaceKernel
    from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.sgd_path import sgd_lifetime_path
    from mondrian_bo.surrogates.mondrian_kernel.lifetime_posterior import lifetime_posterior
    from mondrian_bo.surrogates.mondrian_kernel.mixture_regressor import (
        MondrianKernelMixtureRegressor,
    )
    from mondrian_bo.surrogates.mondrian_kernel.regressor import MondrianKernelRegressor
    from mondrian_bo.surrogates.mondrian_kernel.support_vector_regressor import MondrianKernelSVR
    from mondrian_bo.surrogates.mondrian_partition.partition import MondrianPartition
    from mondrian_bo.surrogates.partition_kernels.classifier import PartitionSVC
    from mondrian_bo.surrogates.partition_kernels.fast_cluster_kernel import FastClusterKernel
    from mondrian_bo.surrogates.partition_kernels.kernel_pca import PartitionKernelPCA
    from mondrian_bo.surrogates.partition_kernels.membership_kernel import MembershipKernel
    from mondrian_bo.surrogates.partition_kernels.random_forest_kernel import RandomForestKernel
    from mondrian_bo.surrogates.partition_kernels.random_partition_kernel import (
        RandomPartitionKernel,
    )
    from mondrian_bo.surrogates.partition_kernels.regressor import PartitionGaussianProcessRegressor

__all__ = [
    "SPSA",
    "AMFClassifier",
    "AMFRegressor",
    "AskTellSearch",
    "FastClusterKernel",
    "GaussianProcessForestRegressor",
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
    "MondrianPartition",
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
    "AMFClassifier": "mondrian_bo.surrogates.amf.classifier",
    "AMFRegressor": "mondrian_bo.surrogates.amf.regressor",
    "AskTellSearch": "mondrian_bo.surrogates.mondrian_grid.lifetime_search",
    "FastClusterKernel": "mondrian_bo.surrogates.partition_kernels.fast_cluster_kernel",
    "GaussianProcessForestRegressor": ("mondrian_bo.surrogates.gaussian_process_forest.regressor"),
    "Greedy": "mondrian_bo.surrogates.mondrian_grid.lifetime_search",
    "LaplaceFourierFeatures": "mondrian_bo.surrogates.mondrian_kernel.baseline_features",
    "LaplaceKernel": "mondrian_bo.surrogates.mondrian_kernel.laplace",
    "MembershipKernel": "mondrian_bo.surrogates.partition_kernels.membership_kernel",
    "MondrianDensityClassifier": "mondrian_bo.surrogates.density.classifier",
    "MondrianFeatures": "mondrian_bo.surrogates.mondrian_kernel.features",
    "MondrianForestClassifier": "mondrian_bo.surrogates.mondrian_forest.classifier",
    "MondrianForestDensity": "mondrian_bo.surrogates.density.estimator",
    "MondrianForestRegressor": "mondrian_bo.surrogates.mondrian_forest.regressor",
    "MondrianGridRegressor": "mondrian_bo.surrogates.mondrian_grid.regressor",
    "MondrianKernelClassifier": "mondrian_bo.surrogates.mondrian_kernel.classifier",
    "MondrianKernelMixtureRegressor": "mondrian_bo.surrogates.mondrian_kernel.mixture_regressor",
    "MondrianKernelRegressor": "mondrian_bo.surrogates.mondrian_kernel.regressor",
    "MondrianKernelSVR": "mondrian_bo.surrogates.mondrian_kernel.support_vector_regressor",
    "MondrianPartition": "mondrian_bo.surrogates.mondrian_partition.partition",
    "OnlineDummyClassifier": "mondrian_bo.surrogates.estimators.dummy",
    "OnlineDummyRegressor": "mondrian_bo.surrogates.estimators.dummy",
    "PartitionGaussianProcessRegressor": "mondrian_bo.surrogates.partition_kernels.regressor",
    "PartitionKernelPCA": "mondrian_bo.surrogates.partition_kernels.kernel_pca",
    "PartitionSVC": "mondrian_bo.surrogates.partition_kernels.classifier",
    "RandomBinningFeatures": "mondrian_bo.surrogates.mondrian_kernel.baseline_features",
    "RandomForestKernel": "mondrian_bo.surrogates.partition_kernels.random_forest_kernel",
    "RandomPartitionKernel": "mondrian_bo.surrogates.partition_kernels.random_partition_kernel",
    "SPSA": "mondrian_bo.surrogates.mondrian_grid.lifetime_search",
    "lifetime_posterior": "mondrian_bo.surrogates.mondrian_kernel.lifetime_posterior",
    "search_lifetimes": "mondrian_bo.surrogates.mondrian_grid.lifetime_search",
    "sgd_lifetime_path": "mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.sgd_path",
}
"""The module that defines each lazy name."""

__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)

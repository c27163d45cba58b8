"""Figure 2 of Davies2014: principal components without a kernel and with two kernels."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from _common import arguments, data_set, save
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from mondrian_bo.surrogates import FastClusterKernel, PartitionKernelPCA, RandomForestKernel


def main():
    options = arguments(__file__, __doc__, name="diabetes", data=None, partitions=200, seed=0)
    X, y = data_set(options.name, options.data)
    n_partitions = 20 if options.quick else options.partitions
    X, seed = StandardScaler().fit_transform(X), options.seed
    methods = {
        "PCA": PCA(2),
        "Fast Cluster PCA": PartitionKernelPCA(
            kernel=FastClusterKernel(n_partitions, random_state=seed), random_state=seed
        ),
        "Random Forest PCA": PartitionKernelPCA(
            kernel=RandomForestKernel(n_partitions, random_state=seed), random_state=seed
        ),
    }
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    for axis, (name, method) in zip(axes, methods.items(), strict=True):
        scores = method.fit_transform(X, y)
        design = np.column_stack([np.ones(len(y)), scores])
        residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        share = 1.0 - residual.var() / y.var()
        points = axis.scatter(*scores.T, c=y, s=8, cmap="viridis")
        axis.set(title=name, xticks=[], yticks=[])
        print(f"{name}: both components explain {100 * share:.0f} % of the targets' variance")
    figure.colorbar(points, ax=axes, label="target")
    save(figure, options.output)


if __name__ == "__main__":
    main()

"""Figure 6 of Davies2014: CPU time of kernel PCA against the number of points N, one thread."""

from __future__ import annotations

import time

import matplotlib.pyplot as plt
import numpy as np
from _common import arguments, progress, save, say
from sklearn.datasets import make_friedman1
from sklearn.decomposition import KernelPCA
from threadpoolctl import threadpool_limits

from mondrian_bo.surrogates import FastClusterKernel, PartitionKernelPCA, RandomForestKernel


def seconds(function, *arguments):
    """Return the CPU time of a call, which depends little on other processes."""
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def slope(sizes, times):
    """Return the exponent of the scaling, over the larger half of the sizes."""
    half = len(sizes) // 2
    return np.polyfit(np.log(sizes[half:]), np.log(times[half:]), 1)[0]


def main():
    options = arguments(__file__, __doc__, partitions=100, components=2, repeats=7)
    largest = {"Fast Cluster": 100_000, "Random Forest": 30_000, "RBF, exact": 3000}
    sizes = np.array([300, 1000, 3000, 10_000, 30_000, 100_000])
    if options.quick:
        largest, sizes, options.partitions = (
            dict.fromkeys(largest, 400),
            np.array([50, 100, 200, 400]),
            10,
        )
    methods = {
        "Fast Cluster": PartitionKernelPCA(
            options.components, kernel=FastClusterKernel(options.partitions), tol=1e-4
        ),
        "Random Forest": PartitionKernelPCA(
            options.components, kernel=RandomForestKernel(options.partitions), tol=1e-4
        ),
        "RBF, exact": KernelPCA(options.components, kernel="rbf", eigen_solver="dense"),
    }
    figure, axis = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
    with threadpool_limits(1):
        for method in methods.values():  # compile, and import what is imported on first use
            method.fit_transform(*make_friedman1(50, random_state=0))
        for name, method in methods.items():
            own = sizes[sizes <= largest[name]]
            times = np.array(
                [
                    seconds(method.fit_transform, *make_friedman1(n, random_state=0))
                    for n in progress(own, desc=name)
                ]
            )
            axis.loglog(own, times, "o-", label=f"{name}: N^{slope(own, times):.2f}")
            cells = [f"N={n}: {t:.3g} s" for n, t in zip(own, times, strict=True)]
            say(f"{name}, exponent {slope(own, times):.2f}: " + ", ".join(cells))
        # The two parts of the cost: assigning points to clusters, and products with vectors.
        kernel = FastClusterKernel(20 if options.quick else 200, random_state=0)
        rows = []
        for n in progress(sizes, desc="assign, K @ v"):
            X = make_friedman1(n, random_state=0)[0]
            vector = np.random.default_rng(0).normal(size=n)
            made = seconds(lambda X=X: kernel.fit(X).assign(X))
            gram = kernel.gram(X)
            product = min(seconds(gram.matvec, vector) for _ in range(options.repeats))
            rows.append((n, made, product))
    for n, made, product in rows:
        print(
            f"N={n}, m={kernel.n_partitions}: "
            f"fit and assign {made:.3g} s, K @ v {1e3 * product:.3g} ms"
        )
    exponents = [slope(sizes, np.array(column)) for column in list(zip(*rows, strict=True))[1:]]
    print("exponents: fit and assign {:.2f}, K @ v {:.2f}".format(*exponents))
    axis.set(xlabel="N", ylabel="CPU seconds for kernel PCA", title=f"m = {options.partitions}")
    axis.legend()
    save(figure, options.output)


if __name__ == "__main__":
    main()

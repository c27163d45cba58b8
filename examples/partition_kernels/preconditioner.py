"""Iterations of conjugate gradients with and without the preconditioner of equations 9 and 10."""

from __future__ import annotations

import numpy as np
from _common import arguments, progress, say
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import StandardScaler

from mondrian_bo.surrogates import FastClusterKernel, MondrianForestRegressor, RandomForestKernel
from mondrian_bo.surrogates.partition_kernels.linear_system import ShiftedSystem
from mondrian_bo.surrogates.partition_kernels.preconditioner import PartitionPreconditioner


def main():
    options = arguments(
        __file__, __doc__, picture=False, samples=[1000, 10_000], partitions=200, tol=1e-6
    )
    sizes = [100] if options.quick else options.samples
    noises = [0.001, 0.01, 0.1, 1.0]
    kernels = {
        "Random Forest": RandomForestKernel(options.partitions, random_state=0),
        "Mondrian forest": RandomForestKernel(
            options.partitions, forest=MondrianForestRegressor(), random_state=0
        ),
        "Fast Cluster": FastClusterKernel(options.partitions, random_state=0),
    }
    header = "| kernel | N | noise / signal | without | with | condition without | with |"
    print(f"Relative residual {options.tol:g}, m = {options.partitions}\n\n{header}")
    print("| --- |" + " ---: |" * 6)
    for n in sizes:
        X, y = make_friedman1(n, noise=1.0, random_state=0)
        X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
        for name, kernel in kernels.items():
            gram = kernel.fit(X, y).gram(X)
            for noise in progress(noises, desc=f"{name}, N={n}"):
                counts = []
                for preconditioned in (False, True):
                    system = ShiftedSystem(
                        gram, noise, dense=False, preconditioned=preconditioned, tol=options.tol
                    )
                    system.solve(y)
                    counts.append(str(system.n_iterations[0]))
                cells = counts + (conditions(gram, noise) if n <= 1000 else ["", ""])
                say(f"| {name} | {n} | {noise:g} | " + " | ".join(cells) + " |")


def conditions(gram, noise):
    """Condition numbers of the system, without and with the preconditioner."""
    n = gram.shape[0]
    matrix = gram.toarray() + noise * np.eye(n)
    inverse = PartitionPreconditioner(gram, max(noise, 0.1)) @ np.eye(n)
    factor = np.linalg.cholesky(0.5 * (inverse + inverse.T))
    both = np.linalg.eigvalsh(factor.T @ matrix @ factor)
    return [f"{np.linalg.cond(matrix):.0f}", f"{both[-1] / both[0]:.0f}"]


if __name__ == "__main__":
    main()

"""Mean depth of leaves (Proposition 2 of Mourtada2021): restricted partitions and whole boxes.

Uniform samples in the unit cube. The paper's printed bound for M = 1 is ``log2(n) + 2``; a random
search tree, which a restricted tree in one dimension is, has ``2 (H_n - 1)``. The range is known
where the first two samples are opposite corners of the cube.
"""

from __future__ import annotations

import numpy as np
from _common import arguments, progress

from mondrian_bo.surrogates import AMFRegressor


def main():
    options = arguments(__file__, __doc__, picture=False, samples=200, repeats=20)
    n, repeats = (30, 2) if options.quick else (options.samples, options.repeats)
    bound, exact = np.log2(n) + 2.0, 2.0 * (1.0 / np.arange(1, n + 1)).sum() - 2.0
    print(f"n = {n}: printed bound {bound:.1f}, random search tree {exact:.1f}")
    print("| features | restricted | restricted, range known | whole box |")
    print("| ---: | ---: | ---: | ---: |")
    for d in (1, 2, 5, 10):
        cells = []
        for known, bounds in ((False, None), (True, None), (False, [[-1e-3, 1.0 + 1e-3]] * d)):
            depths = []
            for seed in progress(range(repeats)):
                rng = np.random.default_rng(seed)
                X, y = rng.random((n, d)), rng.normal(size=n)
                if known:
                    X[:2] = [[0.0], [1.0]]
                forest = AMFRegressor(use_aggregation=False, bounds=bounds, random_state=seed)
                depths.append(forest.fit(X, y).weighted_depth(X).mean())
            cells.append(f"{np.mean(depths):.2f} ± {np.std(depths) / np.sqrt(repeats):.2f}")
        print(f"| {d} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()

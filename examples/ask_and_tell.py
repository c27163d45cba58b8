"""MondrianOptimizer without a framework: a conditional space, batches, saving and loading.

The example tunes the kernel of a kernel ridge regression, and its parameters, on scikit-learn's
diabetes data.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from _figures import arguments, progress
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mondrian_bo import Categorical, Condition, Float, Int, MondrianOptimizer, SearchSpace

SPACE = SearchSpace(
    {
        "alpha": Float(1e-4, 100.0, log=True),
        "kernel": Categorical(("rbf", "laplacian", "polynomial")),
        "gamma": Float(1e-4, 1.0, log=True),
        "degree": Int(1, 4, condition=Condition("kernel", ("polynomial",))),
    }
)
X, y = load_diabetes(return_X_y=True)


def error(params):
    model = make_pipeline(StandardScaler(), KernelRidge(**params))
    score = cross_val_score(model, X, y - y.mean(), cv=3, scoring="neg_root_mean_squared_error")
    return -score.mean()


def main():
    n_single, n_pairs = (8, 2) if arguments(__file__, __doc__, picture=False).quick else (20, 10)
    optimizer = MondrianOptimizer(SPACE, direction="minimize", seed=0)
    for _ in progress(range(n_single), desc="one at a time"):
        params = optimizer.ask()
        optimizer.tell(params, error(params))

    # Resume from a file, with two trials at a time. The first is pending when the second is made.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "optimizer.npz"
        optimizer.save(path)
        optimizer = MondrianOptimizer.load(path)
    for _ in progress(range(n_pairs), desc="two at a time"):
        batch = optimizer.ask(2)
        optimizer.tell(batch, [error(params) for params in batch])

    params, value = optimizer.best
    mean, std = optimizer.predict(params)
    print(f"best of {optimizer.n_trials}: {params}")
    print(f"cross-validated error {value:.2f}, predicted {mean[0]:.2f} ± {std[0]:.2f}")


if __name__ == "__main__":
    main()

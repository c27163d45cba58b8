"""Constraints between parameters that need no trial: models of a limited size.

    python examples/constrained_inputs.py [--quick]

The example tunes trees or a neural network on scikit-learn's diabetes data. A model may have at
most 1000 numbers: leaves of the trees, or weights of the network. The parameters determine the
size, so `MondrianSampler(is_valid=...)` never proposes a model that is too large.
"""

from __future__ import annotations

import sys
import warnings

import optuna
from _figures import arguments
from sklearn.datasets import load_diabetes
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mondrian_bo import MondrianSampler

MOST_NUMBERS = 1000
X, y = load_diabetes(return_X_y=True)
y = (y - y.mean()) / y.std()


def size(params):
    """Return how many numbers a model has; KeyError where a parameter is not known yet."""
    if params["model"] == "trees":
        return params["trees"] * params["leaves"]
    width = params["width"]
    return X.shape[1] * width + (params["layers"] - 1) * width**2 + width


def is_small(params):
    return size(params) <= MOST_NUMBERS


def error(trial):
    if trial.suggest_categorical("model", ["trees", "network"]) == "trees":
        model = ExtraTreesRegressor(
            trial.suggest_int("trees", 1, 100, log=True),
            max_leaf_nodes=trial.suggest_int("leaves", 2, 200, log=True),
            random_state=0,
        )
    else:
        layers = trial.suggest_int("layers", 1, 4)
        model = MLPRegressor(
            hidden_layer_sizes=[trial.suggest_int("width", 1, 64, log=True)] * layers,
            alpha=trial.suggest_float("alpha", 1e-3, 100.0, log=True),
            solver="lbfgs",
            max_iter=50,
            random_state=0,
        )
    pipeline = make_pipeline(StandardScaler(), model)
    score = cross_val_score(pipeline, X, y, cv=3, scoring="neg_root_mean_squared_error")
    return -score.mean()


def main():
    n_trials = 15 if arguments(__file__, __doc__, picture=False).quick else 60
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # The networks are not trained to convergence.
    warnings.filterwarnings("ignore", module="sklearn")

    study = optuna.create_study(sampler=MondrianSampler(seed=0, is_valid=is_small))
    study.optimize(error, n_trials=n_trials, show_progress_bar=sys.stderr.isatty())
    sizes = [size(trial.params) for trial in study.trials]
    print(f"{n_trials} trials, of {min(sizes)} to {max(sizes)} numbers")
    print(f"best: error {study.best_value:.3f}, {size(study.best_params)} numbers")
    print(study.best_params)


if __name__ == "__main__":
    main()

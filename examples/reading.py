"""A noisy study: when to stop, importance of parameters, and the trial to recommend.

The objective imitates the validation error of a network by a formula with noise. The program prints
the number of trials until `MondrianTerminator` stops the study, the importance of parameters, and
two candidates for the best trial: that of the best value, and that of the best prediction.

    python examples/reading.py
    python examples/reading.py --output docs/images/reading.png
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import optuna
from _figures import arguments, save

from mondrian_bo import (
    MondrianImportanceEvaluator,
    MondrianSampler,
    MondrianTerminator,
    plotting,
    robust_best,
)


def error(params):
    """Return the noise-free error."""
    rate, layers = params["rate"], params["layers"]
    value = 0.3 * (math.log10(rate) + 2.5 + 0.3 * (layers - 2)) ** 2 + 0.05 * (layers - 2) ** 2
    if params["optimizer"] == "sgd":
        value += 0.1 + 0.3 * (params["momentum"] - 0.8) ** 2
    return value


def objective(trial):
    """Return the error with noise."""
    params = {
        "rate": trial.suggest_float("rate", 1e-4, 1e-1, log=True),
        "layers": trial.suggest_int("layers", 1, 5),
        "optimizer": trial.suggest_categorical("optimizer", ["sgd", "adam"]),
    }
    if params["optimizer"] == "sgd":
        params["momentum"] = trial.suggest_float("momentum", 0.0, 1.0)
    return error(params) + 0.02 * np.random.default_rng(trial.number).standard_normal()


def main() -> None:
    """Run the study, print what the model says, and draw it."""
    options = arguments(__file__, __doc__, trials=150)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    study = optuna.create_study(sampler=MondrianSampler(seed=0))
    terminator = MondrianTerminator(tolerance=0.3, noisy=True, show=False)
    study.optimize(objective, 15 if options.quick else options.trials, callbacks=[terminator])
    print(f"{len(study.trials)} trials")
    evaluator = MondrianImportanceEvaluator(interactions=True)
    for name, share in evaluator.evaluate(study).items():
        print(f"{name:<10} {share:.2f}")
    for label, trial in (("best value", study.best_trial), ("best prediction", robust_best(study))):
        print(f"{label:<15} value {trial.value:.3f}, without noise {error(trial.params):.3f}")
    draw(study, options.output)


def draw(study, path) -> None:
    """Draw six plots of the study."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 3, figsize=(13, 7.4), layout="constrained")
    (slice_axes, map_axes, std_axes), (importance, partition, calibration) = axes
    plotting.plot_slice(study, "rate", axes=slice_axes).set_title("slice, 90 % intervals")
    plotting.plot_map(study, "rate", "layers", axes=map_axes).set_title("map")
    plotting.plot_map(study, "rate", "layers", uncertainty=True, axes=std_axes)
    std_axes.set_title("its uncertainty")
    plotting.plot_importance(study, axes=importance).set_title("importance")
    plotting.plot_partition(study, "rate", "layers", axes=partition)
    partition.set_title("a Mondrian partition")
    plotting.plot_calibration(study, axes=calibration).set_title("past predictions")
    save(figure, path)


if __name__ == "__main__":
    main()

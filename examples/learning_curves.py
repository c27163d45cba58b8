"""A perceptron is tuned with and without pruning, and a learning curve is predicted.

Left panel: the validation loss after each epoch, of complete and of pruned trials. Right panel: the
predicted last loss of one trial after each of its epochs. The model of learning curves has not
learnt this trial.
"""

from __future__ import annotations

import math
import sys
import warnings

import numpy as np
import optuna
from _figures import arguments, save, say
from optuna.trial import TrialState
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from mondrian_bo import MondrianPruner, MondrianSampler
from mondrian_bo.optimizer.learning_curves.curve_regression import Curve
from mondrian_bo.optimizer.learning_curves.learning_curves import LearningCurves


class Training:
    """The objective: the log-loss of a perceptron on the digits, reported after each epoch."""

    def __init__(self, n_epochs, n_samples):
        x, y = load_digits(return_X_y=True)
        self.split = train_test_split(x[:n_samples] / 16.0, y[:n_samples], random_state=0)
        self.n_epochs = n_epochs
        self.n_trained = 0

    def __call__(self, trial):
        """Train, and report after each epoch."""
        train_x, valid_x, train_y, valid_y = self.split
        model = MLPClassifier(
            (trial.suggest_int("hidden", 4, 64, log=True),),
            learning_rate_init=trial.suggest_float("learning_rate", 1e-4, 1e-1, log=True),
            alpha=trial.suggest_float("alpha", 1e-5, 1e0, log=True),
            random_state=0,
        )
        loss = math.inf
        for epoch in range(self.n_epochs):
            model.partial_fit(train_x, train_y, classes=range(10))
            loss = log_loss(valid_y, model.predict_proba(valid_x))
            self.n_trained += 1
            trial.report(loss, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return loss


def run(pruner, n_trials, n_epochs, n_samples):
    """Run a study; return it with the number of epochs that were trained."""
    training = Training(n_epochs, n_samples)
    study = optuna.create_study(sampler=MondrianSampler(seed=0), pruner=pruner)
    study.optimize(training, n_trials=n_trials, show_progress_bar=sys.stderr.isatty())
    return study, training.n_trained


def predictions(curves):
    """Predict the end of the median curve from each of its beginnings, and all other curves."""
    chosen = int(np.argsort(curves[:, -1])[len(curves) // 2])
    model = LearningCurves()
    for curve in np.delete(curves, chosen, axis=0):
        # Larger is better inside.
        model.tell(-curve[-1], range(len(curve)), -curve)
    running, found = Curve(), []
    for epoch, loss in enumerate(curves[chosen, :-1]):
        running.extend([epoch], [-loss])
        predicted = model.predict(running)
        if predicted is not None:
            found.append((epoch, -predicted[0], predicted[1]))
    return curves[chosen], np.array(found)


def draw(path, pruned_study, curves):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for trial in pruned_study.trials:
        is_pruned = trial.state == TrialState.PRUNED
        left.plot(
            list(trial.intermediate_values.keys()),
            list(trial.intermediate_values.values()),
            color="C3" if is_pruned else "C0",
            linewidth=0.8,
            marker="x" if is_pruned else "",
            markevery=[-1],
            zorder=3 if is_pruned else 2,
        )
    left.plot([], [], color="C0", label="complete")
    left.plot([], [], color="C3", marker="x", label="pruned")
    left.set(xlabel="epoch", ylabel="validation loss", yscale="log", title="a study")
    left.legend()
    curve, found = predictions(curves)
    right.plot(curves.T, color="0.85", linewidth=0.8)
    right.plot(curve, color="C0", label="curve of one trial")
    right.errorbar(*found.T, fmt="o", color="C1", markersize=3, label="its predicted end")
    right.axhline(curve[-1], color="C0", linewidth=0.8, linestyle="--", label="its end")
    right.set(xlabel="epochs known", yscale="log", title="predictions after each epoch")
    right.legend()
    save(figure, path)


def main():
    options = arguments(__file__, __doc__)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    n_trials, n_epochs, n_samples = (14, 6, 400) if options.quick else (50, 30, 1797)
    sizes = (n_trials, n_epochs, n_samples)
    plain, n_plain = run(optuna.pruners.NopPruner(), *sizes)
    pruned, n_pruned = run(MondrianPruner(), *sizes)
    for name, study, n_trained in (
        ("no pruning", plain, n_plain),
        ("MondrianPruner", pruned, n_pruned),
    ):
        n_stopped = sum(trial.state == TrialState.PRUNED for trial in study.trials)
        say(
            f"{name:>14}: {n_trained:4d} epochs, {n_stopped:2d} of {n_trials} trials pruned, "
            f"loss {study.best_value:.3f}"
        )
    curves = np.array([list(trial.intermediate_values.values()) for trial in plain.trials])
    draw(options.output, pruned, curves)


if __name__ == "__main__":
    main()

"""A study with constraints, one with two objectives, and one with both, compared with TPE."""

from __future__ import annotations

import warnings

import numpy as np
import optuna
from _figures import arguments, panels_in_a_row, progress, save

from mondrian_bo import MondrianSampler
from mondrian_bo.acquisitions import hypervolume

OURS, BASELINE = "MondrianSampler", "TPESampler"

REFERENCE = (60.0, 60.0)
"""Reference point of the hypervolumes, of both studies with two objectives."""


def branin(x, y):
    """Branin's function."""
    bend = y - 5.1 * x**2 / (4.0 * np.pi**2) + 5.0 * x / np.pi - 6.0
    return bend**2 + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(x) + 10.0


def suggest(trial):
    return trial.suggest_float("x", -5.0, 10.0), trial.suggest_float("y", 0.0, 15.0)


def in_disc(x, y):
    """Return a constraint: at most 0 in a disc that contains none of the three minima."""
    return (x - 2.5) ** 2 + (y - 7.5) ** 2 - 20.0


def constrained(trial):
    x, y = suggest(trial)
    trial.set_constraint("disc", in_disc(x, y))
    return branin(x, y)


def two_objectives(trial):
    x, y = suggest(trial)
    return branin(x, y), (x + 2.0) ** 2 + (y - 2.0) ** 2


def both(trial):
    x, y = suggest(trial)
    trial.set_constraint("disc", in_disc(x, y))
    return branin(x, y), (x + 2.0) ** 2 + (y - 2.0) ** 2


STUDIES = {
    "constrained": (constrained, ["minimize"]),
    "two objectives": (two_objectives, ["minimize"] * 2),
    "both": (both, ["minimize"] * 2),
}
"""Objective and directions by title."""


def run(objective, directions, sampler, n_trials):
    study = optuna.create_study(directions=directions, sampler=sampler)
    study.optimize(objective, n_trials=n_trials)
    return study


def is_feasible(trial):
    return all(value <= 0.0 for value in trial.constraints.values())


def score(study):
    """Best feasible value, or the hypervolume of the feasible trials."""
    feasible = [trial.values for trial in study.trials if is_feasible(trial)]
    if len(study.directions) == 1:
        return min(values[0] for values in feasible)
    return hypervolume(-np.array(feasible).reshape(-1, 2), -np.array(REFERENCE))


def draw_map(axis, study):
    """Draw the objective, the constraint's boundary, and the trials in their order."""
    x, y = np.meshgrid(np.linspace(-5.0, 10.0, 200), np.linspace(0.0, 15.0, 200))
    axis.contour(x, y, np.log(branin(x, y) + 1.0), levels=12, linewidths=0.5, colors="0.7")
    axis.contour(x, y, in_disc(x, y), levels=[0.0], colors="tab:red", linewidths=1.5)
    points = np.array([[trial.params["x"], trial.params["y"]] for trial in study.trials])
    shown = axis.scatter(*points.T, c=np.arange(len(points)), cmap="viridis", s=18)
    axis.set(xlabel="x", ylabel="y")
    axis.figure.colorbar(shown, ax=axis, label="trial")


def draw_front(axis, studies):
    """Draw the Pareto fronts of several studies."""
    for (name, study), marker in zip(studies.items(), "o^", strict=True):
        values = np.array(sorted(trial.values for trial in study.best_trials))
        axis.plot(*values.T, marker, markersize=4, label=name)
    axis.set(xlabel="Branin", ylabel="squared distance", xlim=(0, 60), ylim=(0, 60))
    axis.legend(fontsize=8)


def main() -> None:
    """Run the three studies with both samplers, print their scores and draw our results."""
    options = arguments(__file__, __doc__, trials=60, seeds=5)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    n_trials, n_seeds = (15, 1) if options.quick else (options.trials, options.seeds)
    samplers = {OURS: MondrianSampler, BASELINE: optuna.samplers.TPESampler}
    figure, axes = panels_in_a_row(3)
    print(f"{'study':<16} {'score':<20} {'sampler':<16} mean ± std of {n_seeds} seeds, feasible")
    for axis, (title, (objective, directions)) in zip(axes, STUDIES.items(), strict=True):
        first = {}
        for name, sampler in samplers.items():
            studies = [
                run(objective, directions, sampler(seed=seed), n_trials)
                for seed in progress(range(n_seeds), desc=f"{title}, {name}")
            ]
            first[name] = studies[0]
            scores = np.array([score(study) for study in studies])
            share = np.mean([is_feasible(trial) for study in studies for trial in study.trials])
            what = "best feasible value" if len(directions) == 1 else "hypervolume"
            spread = f"{scores.mean():.2f} ± {scores.std():.2f}"
            print(f"{title:<16} {what:<20} {name:<16} {spread}, {share:.0%}")
        if len(directions) == 1:
            draw_map(axis, first[OURS])
        else:
            draw_front(axis, first)
        axis.set_title(title)
    save(figure, options.output)


if __name__ == "__main__":
    main()

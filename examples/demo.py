"""Tune a neural network on the digits data, and compare with random search.

The objective is the 3-fold cross-validated log-loss of a small multi-layer perceptron after ten
epochs, over eight hyper-parameters. Two of them are conditional: ``momentum`` needs SGD, and the
width of the second layer needs two layers. Both samplers run the same number of trials, with five
seeds each.

An SQLite file holds the trials. A second run of the script resumes each study, or reports at once
if all trials are done. ``--fresh`` deletes the trials of earlier runs.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from mondrian_bo import MondrianSampler

SEEDS = (0, 1, 2, 3, 4)
WORST = 10.0
"""Log-loss of a network that diverged; that of uniform probabilities is 2.3."""

RANDOM, MONDRIAN = "random search", "MondrianSampler"
SAMPLERS = {RANDOM: optuna.samplers.RandomSampler, MONDRIAN: MondrianSampler}

X, y = load_digits(return_X_y=True)
X = X / 16.0
FOLDS = StratifiedKFold(n_splits=3, shuffle=True, random_state=0)


def objective(trial: optuna.Trial) -> float:
    layers = [trial.suggest_int("width", 4, 96, log=True)]
    if trial.suggest_int("layers", 1, 2) == 2:
        layers.append(trial.suggest_int("width_2", 4, 96, log=True))
    solver = trial.suggest_categorical("solver", ["adam", "sgd"])
    network = MLPClassifier(
        hidden_layer_sizes=layers,
        activation=trial.suggest_categorical("activation", ["relu", "tanh", "logistic"]),
        solver=solver,
        learning_rate_init=trial.suggest_float("learning_rate", 1e-5, 1.0, log=True),
        momentum=trial.suggest_float("momentum", 0.0, 0.99) if solver == "sgd" else 0.9,
        alpha=trial.suggest_float("alpha", 1e-6, 100.0, log=True),
        batch_size=trial.suggest_int("batch_size", 32, 512, log=True),
        max_iter=10,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten epochs end before convergence, on purpose
        try:
            scores = cross_val_score(
                network, X, y, cv=FOLDS, scoring="neg_log_loss", error_score=np.nan
            )
        except ValueError:  # the weights of the networks of all folds diverged
            return WORST
    return min(float(-scores.mean()), WORST) if np.isfinite(scores).all() else WORST


def search(name: str, seed: int, storage: str, n_trials: int) -> optuna.Study:
    """Run a study up to n_trials completed trials, some of which may be of an earlier run."""
    study = optuna.create_study(
        study_name=f"{name}, seed {seed}", storage=storage, load_if_exists=True
    )
    for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
        # An interrupted run left this trial.
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    kept = len(study.trials)
    todo = n_trials - len(values(study))
    if todo > 0:
        print(f"{study.study_name}: {todo} trials" + (f" after {kept}" if kept else ""))
        # With the same seed, a resumed random search would repeat its first draws.
        study.sampler = SAMPLERS[name](seed=seed + 1000 * kept)
        study.optimize(objective, n_trials=todo, show_progress_bar=True)
    else:
        print(f"{study.study_name}: {n_trials} trials already in the study")
    return study


def values(study: optuna.Study) -> list[float]:
    """Objective values of the completed trials, in order."""
    done = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
    return [trial.value for trial in done if trial.value is not None]


def show(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def report(studies: dict[str, list[optuna.Study]], n_trials: int) -> None:
    """Print the best parameters of both samplers, and their log-losses by seed."""
    best = {name: [min(values(s)[:n_trials]) for s in runs] for name, runs in studies.items()}
    chosen = {
        name: next(t for s in runs for t in s.trials if t.value == min(best[name])).params
        for name, runs in studies.items()
    }
    rows = [["", *studies]]
    for parameter in dict.fromkeys(key for params in chosen.values() for key in params):
        rows.append([parameter, *(show(params.get(parameter, "-")) for params in chosen.values())])
    rows.append(["log-loss", *(f"{min(found):.4f}" for found in best.values())])
    for i, seed in enumerate(SEEDS):
        rows.append([f"  seed {seed}", *(f"{found[i]:.4f}" for found in best.values())])
    rows.append(["  median", *(f"{np.median(found):.4f}" for found in best.values())])
    print(f"\nThe best parameters, and the best log-loss of each run of {n_trials} trials:\n")
    for row in rows:
        print("  " + "".join(f"{cell:18}" for cell in row).rstrip())

    random, mondrian = (float(np.median(best[name])) for name in (RANDOM, MONDRIAN))
    won = sum(m < r for m, r in zip(best[MONDRIAN], best[RANDOM], strict=True))
    print(
        f"\nMedian log-loss: MondrianSampler {mondrian:.4f}, random search {random:.4f} "
        f"({mondrian / random - 1:+.1%}). MondrianSampler won {won} of {len(SEEDS)} seeds."
    )
    if mondrian > random:
        print("Random search was better in this run.")


def picture(studies: dict[str, list[optuna.Study]], n_trials: int, path: Path) -> None:
    """Draw trials as points, the best so far of each run as thin lines, their median thick."""
    figure, axes = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    number = np.arange(1, n_trials + 1)
    for (name, runs), colour in zip(studies.items(), ("tab:gray", "tab:red"), strict=True):
        found = np.array([values(study)[:n_trials] for study in runs])
        best = np.minimum.accumulate(found, axis=1)
        axes.plot(number, found.T, "o", color=colour, alpha=0.25, markersize=3)
        axes.step(number, best.T, where="post", color=colour, alpha=0.4, linewidth=1)
        median = np.median(best, axis=0)
        label = f"{name}: {median[-1]:.4f}"
        axes.step(number, median, where="post", color=colour, linewidth=2.5, label=label)
    axes.set(yscale="log", xlabel="trial", ylabel="cross-validated log-loss")
    axes.set_title(f"A neural network on the digits data: best so far, median of {len(SEEDS)} runs")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=60, help="per run (default: 60)")
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder")
    parser.add_argument("--fresh", action="store_true", help="delete the trials of earlier runs")
    options = parser.parse_args()
    if options.trials < 1:
        parser.error("--trials must be at least 1")
    options.output.mkdir(parents=True, exist_ok=True)
    database = options.output / "study.db"
    if options.fresh:
        database.unlink(missing_ok=True)
    storage = f"sqlite:///{database.as_posix()}"

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    print("The first use of MondrianSampler after installation compiles it, which takes seconds.")
    with threadpool_limits(1):  # the matrices are small: one thread is faster
        studies = {
            name: [search(name, seed, storage, options.trials) for seed in SEEDS]
            for name in SAMPLERS
        }
    report(studies, options.trials)
    history = options.output / "history.png"
    picture(studies, options.trials, history)
    print(f"\nTrials in {database}, picture in {history}")


if __name__ == "__main__":
    main()

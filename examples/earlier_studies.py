"""A study of a small sample starts the study of the whole data.

A support vector machine for the digits is tuned on 300 samples, and then on all samples: without an
earlier study, with the study of 300 samples, and with a misleading study, whose values have the
other sign. The example prints the error of the best trial so far.

    python examples/earlier_studies.py
"""

from __future__ import annotations

import optuna
from _figures import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.svm import SVC

from mondrian_bo import MondrianSampler


def objective(n_samples, sign=1.0, with_scaler=True):
    """Return the cross-validated error on some samples as an objective."""
    x, y = load_digits(return_X_y=True)

    def error(trial):
        model = SVC(
            C=trial.suggest_float("C", 1e-3, 1e3, log=True),
            gamma=trial.suggest_float("gamma", 1e-6, 1e1, log=True),
        )
        if with_scaler:
            name = trial.suggest_categorical("scaler", ["none", "standard", "quantile"])
            scalers = {
                "standard": StandardScaler(),
                "quantile": QuantileTransformer(n_quantiles=50),
            }
            model = make_pipeline(scalers.get(name), model)
        return sign * (1.0 - cross_val_score(model, x[:n_samples], y[:n_samples], cv=3).mean())

    return error


def search(function, n_trials, earlier=()):
    """Return a study with earlier studies."""
    sampler = MondrianSampler(seed=0, warm_start=list(earlier))
    study = optuna.create_study(sampler=sampler)
    study.optimize(function, n_trials)
    return study


def main() -> None:
    """Run the studies and print their errors."""
    options = arguments(__file__, __doc__, picture=False, trials=25)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    n_trials, n_all = (8, 400) if options.quick else (options.trials, 1797)
    # The earlier studies lack a parameter of the later one.
    small = search(objective(300, with_scaler=False), n_trials)
    wrong = search(objective(300, -1.0, with_scaler=False), n_trials)
    shown = [n for n in (2, 5, 8, 12, 18, 25) if n <= n_trials]
    print(f"{'error after':<22}" + "".join(f"{n:>4} trials" for n in shown))
    for name, earlier in {
        "no earlier study": [],
        "a small sample": [small],
        "a misleading study": [wrong],
    }.items():
        values = [trial.value for trial in search(objective(n_all), n_trials, earlier).trials]
        print(f"{name:<22}" + "".join(f"{min(values[:n]):11.4f}" for n in shown))


if __name__ == "__main__":
    main()

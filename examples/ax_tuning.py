"""Ax with Mondrian forests: tune a model under a constraint, predict, save, resume and plot.

The example maximises the accuracy of extremely randomised trees on scikit-learn's breast cancer
data, with at most 150 leaves in all. It needs Ax: pip install -c constraints.txt '.[ax]'.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
from _figures import arguments, progress
from ax.analysis.plotly.cross_validation import CrossValidationPlot
from ax.analysis.plotly.surface.contour import ContourPlot
from ax.analysis.plotly.surface.slice import SlicePlot
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_validate

from mondrian_bo.integrations.ax import mondrian_generation_strategy

PARAMETERS = [
    RangeParameterConfig("n_estimators", (1, 40), "int", scaling="log"),
    RangeParameterConfig("max_features", (0.05, 1.0), "float"),
    RangeParameterConfig("max_leaf_nodes", (2, 100), "int", scaling="log"),
    ChoiceParameterConfig("min_samples_leaf", [1, 2, 5, 10], "int", is_ordered=True),
    ChoiceParameterConfig("criterion", ["gini", "entropy", "log_loss"], "str", is_ordered=False),
]
X, y = load_breast_cancer(return_X_y=True)


def evaluate(parameters):
    model = ExtraTreesClassifier(**parameters, random_state=0)
    folds = cross_validate(model, X, y, cv=5, return_estimator=True)
    scores = folds["test_score"]
    leaves = [sum(tree.get_n_leaves() for tree in forest) for forest in folds["estimator"]]
    # Means and their standard errors.
    return {
        "accuracy": (scores.mean(), scores.std(ddof=1) / len(scores) ** 0.5),
        "leaves": (np.mean(leaves), np.std(leaves, ddof=1) / len(leaves) ** 0.5),
    }


def tune(client, n_trials):
    for _ in progress(range(n_trials), desc="trials"):
        for index, parameters in client.get_next_trials(max_trials=1).items():
            client.complete_trial(index, raw_data=evaluate(parameters))


def main():
    options = arguments(
        __file__, __doc__, picture=False, quick=False, output=Path("ax-output"), trials=30
    )
    options.output.mkdir(parents=True, exist_ok=True)
    logging.getLogger("ax.api.client").setLevel(logging.WARNING)

    client = Client(random_seed=0)
    client.configure_experiment(parameters=PARAMETERS, name="breast_cancer")
    client.configure_optimization(objective="accuracy", outcome_constraints=["leaves <= 150"])
    client.set_generation_strategy(mondrian_generation_strategy(seed=0))
    tune(client, options.trials // 2)

    # Resume the experiment and its strategy from a file.
    path = str(options.output / "experiment.json")
    client.save_to_json_file(path)
    client = Client.load_from_json_file(path)
    tune(client, options.trials - options.trials // 2)

    best, outcomes, index, _ = client.get_best_parameterization()
    print(f"best, trial {index}: {best}")
    print({name: round(float(mean), 4) for name, (mean, _) in outcomes.items()})
    (prediction,) = client.predict([{**best, "max_leaf_nodes": 100}])
    mean, std = prediction["accuracy"]
    print(f"with up to 100 leaves a tree: accuracy {mean:.4f} ± {std:.4f}")

    cards = client.compute_analyses(
        [
            SlicePlot("n_estimators", "accuracy"),
            ContourPlot("n_estimators", "max_features", "accuracy"),
            CrossValidationPlot(["accuracy", "leaves"]),
        ],
        display=False,
    )
    for number, card in enumerate(leaf for group in cards for leaf in group.flatten()):
        page = options.output / f"{number}-{card.name}.html"
        card.get_figure().write_html(page, include_plotlyjs="cdn")
        print(f"wrote {page}")


if __name__ == "__main__":
    main()

"""The tasks of Bayesmark: hyper-parameters of nine scikit-learn models on six data sets.

R. Turner et al. Bayesian Optimization is Superior to Random Search for Machine Learning
Hyperparameter Tuning: Analysis of the Black-Box Optimization Challenge 2020. Proceedings of the
NeurIPS 2020 Competition and Demonstration Track, PMLR 133:3-26, 2021. PyPI package ``bayesmark``;
models and spaces are those of its version 0.0.8.

Bayesmark needs old versions of numpy and scikit-learn, so its own code evaluates in a process with
another Python environment. The tables below declare the spaces, so that problems can be listed and
archives reported on without that environment.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from mondrian_bo.benchmarks.harness.worker_process import shared_worker
from mondrian_bo.benchmarks.problems import bayesmark_worker
from mondrian_bo.benchmarks.problems.base import Objective, Problem
from mondrian_bo.search_space import Categorical, Float, Int, Parameter, SearchSpace

__all__ = ["BAYESMARK_PROBLEMS", "PYTHON_VARIABLE", "QUICK_TASKS", "Task"]

PYTHON_VARIABLE = "MONDRIAN_BO_BAYESMARK_PYTHON"
"""Environment variable that names the interpreter that has Bayesmark."""

_PURPOSE = "run Bayesmark; see `python -m mondrian_bo.benchmarks.make_environment --help`"
"""What the environment is for, in the message that says that there is none."""

_N_TRIALS = 128
"""Trials of a run: 16 batches of 8, as in the challenge of 2020."""

_METRICS = {
    "breast": ("acc", "nll"),
    "digits": ("acc", "nll"),
    "iris": ("acc", "nll"),
    "wine": ("acc", "nll"),
    "boston": ("mae", "mse"),
    "diabetes": ("mae", "mse"),
}
"""Data sets, and the losses on each: two for classifiers, two for regressors."""

_IS_CLASSIFIED = frozenset({"breast", "digits", "iris", "wine"})
"""The data sets with classes."""


class _Logit(NamedTuple):
    """A range on the scale of the logit, which Optuna does not have."""

    low: float
    high: float


_C = Float(1e-2, 1e2, log=True)
_TREE: dict[str, Parameter | _Logit] = {
    "max_depth": Int(1, 15),
    "max_features": _Logit(0.01, 0.99),
    "min_impurity_decrease": Float(0.0, 0.5),
    "min_samples_leaf": _Logit(0.01, 0.49),
    "min_samples_split": _Logit(0.01, 0.99),
    "min_weight_fraction_leaf": _Logit(0.01, 0.49),
}
_PERCEPTRON: dict[str, Parameter | _Logit] = {
    "hidden_layer_sizes": Int(50, 200),
    "alpha": Float(1e-5, 1e1, log=True),
    "batch_size": Int(10, 250),
    "learning_rate_init": Float(1e-5, 1e-1, log=True),
    "tol": Float(1e-5, 1e-1, log=True),
    "validation_fraction": _Logit(0.1, 0.9),
}
_LINEAR_CLASSIFIER: dict[str, Parameter | _Logit] = {"C": _C, "intercept_scaling": _C}
_LINEAR_REGRESSOR: dict[str, Parameter | _Logit] = {
    "alpha": Float(1e-2, 1e2, log=True),
    "fit_intercept": Categorical((False, True)),
    "max_iter": Int(10, 5000, log=True),
    "normalize": Categorical((False, True)),
}

_MODELS: dict[str, dict[str, Parameter | _Logit]] = {
    "DT": _TREE,
    "MLP-adam": {
        **_PERCEPTRON,
        "beta_1": _Logit(0.5, 0.99),
        "beta_2": _Logit(0.9, 1.0 - 1e-6),
        "epsilon": Float(1e-9, 1e-6, log=True),
    },
    "MLP-sgd": {**_PERCEPTRON, "momentum": _Logit(0.001, 0.999), "power_t": _Logit(0.1, 0.9)},
    "RF": _TREE,
    "SVM": {
        "C": Float(1.0, 1e3, log=True),
        "gamma": Float(1e-4, 1e-3, log=True),
        "tol": Float(1e-5, 1e-1, log=True),
    },
    "ada": {"learning_rate": Float(1e-4, 1e1, log=True), "n_estimators": Int(10, 100)},
    "kNN": {"n_neighbors": Int(1, 25), "p": Int(1, 4)},
    "lasso": _LINEAR_CLASSIFIER,
    "linear": _LINEAR_CLASSIFIER,
}
"""The parameters of each model; those of the two linear models are for classification."""

_REGRESSORS = {
    "lasso": {
        **_LINEAR_REGRESSOR,
        "positive": Categorical((False, True)),
        "tol": Float(1e-5, 1e-1, log=True),
    },
    "linear": {**_LINEAR_REGRESSOR, "tol": Float(1e-4, 1e-1, log=True)},
}
"""The parameters of the two linear models for regression."""

_QUICK = {
    "DT": ("breast", "digits", "iris", "wine", "boston", "diabetes"),
    "MLP-adam": ("iris", "wine"),
    "MLP-sgd": ("iris", "wine"),
    "RF": ("breast", "iris", "wine", "boston", "diabetes"),
    "SVM": ("iris", "wine", "boston", "diabetes"),
    "kNN": ("breast", "iris", "wine", "boston", "diabetes"),
    "lasso": ("iris", "wine", "boston", "diabetes"),
    "linear": ("breast", "iris", "wine", "boston", "diabetes"),
}
"""Models and data sets whose evaluation takes less than 0.1 s of CPU, the mean of three random
points on our machine; all 54 pairs take 19 s together, and these 33 less than 1 s."""


@dataclass(frozen=True)
class Task:
    """What is tuned.

    Attributes
    ----------
    model, data, metric : str
        Bayesmark's names.
    """

    model: str
    data: str
    metric: str

    @property
    def name(self) -> str:
        """The name that Bayesmark's files have."""
        return f"{self.model}_{self.data}_{self.metric}"

    @property
    def ranges(self) -> Mapping[str, Parameter | _Logit]:
        """The parameters on Bayesmark's scales."""
        if self.data in _IS_CLASSIFIED:
            return _MODELS[self.model]
        return _REGRESSORS.get(self.model, _MODELS[self.model])

    @property
    def space(self) -> SearchSpace:
        """The parameters; where Bayesmark has a logit scale, the parameter is the logit."""
        return SearchSpace(
            {
                name: Float(_logit(one.low), _logit(one.high)) if isinstance(one, _Logit) else one
                for name, one in self.ranges.items()
            }
        )

    def unwarp(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of the model for parameters of the space."""
        return {
            name: _logistic(params[name], one) if isinstance(one, _Logit) else params[name]
            for name, one in self.ranges.items()
        }

    def evaluate(self, params: Mapping[str, Any], seed: tuple[int, ...] = (0,)) -> float:
        """Return the loss that Bayesmark shows to optimizers.

        Parameters
        ----------
        params : mapping
            Parameters of the space.
        seed : tuple of int, default=(0,)
            Seed of the models, which are random in part.

        Returns
        -------
        float
            A cross-validated loss; infinity if the evaluation fails.

        Raises
        ------
        ValueError
            If the environment variable `PYTHON_VARIABLE` names no interpreter that has Bayesmark.
        """
        python = Path(os.environ.get(PYTHON_VARIABLE, ""))
        worker = shared_worker(python, bayesmark_worker.__file__, _PURPOSE)
        loss: float = worker.ask(
            "evaluate",
            model=self.model,
            data=self.data,
            metric=self.metric,
            params=self.unwarp(params),
            seed=seed,
        )
        return loss


@dataclass(frozen=True, kw_only=True)
class _TaskProblem(Problem):
    """A task as a problem. The loss is random, and its best observed value is the score.

    Attributes
    ----------
    task : Task
        The task.
    """

    task: Task

    @property
    def missing(self) -> tuple[str, ...]:
        """Bayesmark, if the environment variable does not name its interpreter."""
        return () if os.environ.get(PYTHON_VARIABLE) else self.requires

    def instance(self, seed: int) -> Objective:
        """Return the loss with new random numbers for each evaluation, equal for all samplers."""
        numbers = count()
        return lambda params: self.task.evaluate(params, (seed, next(numbers)))


def _logit(value: float) -> float:
    return math.log(value) - math.log1p(-value)


def _logistic(value: float, bounds: _Logit) -> float:
    # A bound that is warped and unwarped may lie outside by rounding.
    return min(max(1.0 / (1.0 + math.exp(-value)), bounds.low), bounds.high)


def _problem(task: Task) -> _TaskProblem:
    return _TaskProblem(
        name=f"bayesmark_{task.name}",
        space=task.space,
        function=task.evaluate,
        task=task,
        optimum=None,
        budget=_N_TRIALS,
        group="Bayesmark",
        half="held-out",
        description=f"{task.model} on {task.data}, {task.metric}",
        requires=("bayesmark",),
    )


_TASKS = [
    Task(model, data, metric)
    for model in _MODELS
    for data, metrics in _METRICS.items()
    for metric in metrics
]
"""All tasks, in an order that the seed fixes."""
Random(0).shuffle(_TASKS)

BAYESMARK_PROBLEMS = tuple(_problem(task) for task in _TASKS)
"""All 108 tasks in a random order that is always the same: the first ones are a random sample."""

QUICK_TASKS = tuple(
    one.name for one in BAYESMARK_PROBLEMS if one.task.data in _QUICK.get(one.task.model, ())
)
"""Names of the 66 tasks that are quick to evaluate."""

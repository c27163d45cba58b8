"""Suites: problems that are run together, with their seeds and trials."""

from __future__ import annotations

from dataclasses import dataclass

from mondrian_bo.benchmarks.problems.accuracies import ACCURACY_PROBLEMS
from mondrian_bo.benchmarks.problems.bayesmark_tasks import BAYESMARK_PROBLEMS, QUICK_TASKS
from mondrian_bo.benchmarks.problems.bbob import BBOB_FUNCTIONS, UNSEEN_FUNCTIONS
from mondrian_bo.benchmarks.problems.categorical import CATEGORICAL_PROBLEMS
from mondrian_bo.benchmarks.problems.coco import (
    BBOB_PROBLEMS,
    BIOBJECTIVE_PROBLEMS,
    CONSTRAINED_COCO_PROBLEMS,
)
from mondrian_bo.benchmarks.problems.constrained import CONSTRAINED_PROBLEMS
from mondrian_bo.benchmarks.problems.constrained_fronts import CONSTRAINED_FRONT_PROBLEMS
from mondrian_bo.benchmarks.problems.fronts import FRONT_PROBLEMS
from mondrian_bo.benchmarks.problems.larger_learning import LARGER_LEARNING_PROBLEMS
from mondrian_bo.benchmarks.problems.learning import LEARNING_PROBLEMS
from mondrian_bo.benchmarks.problems.linear_scales import LINEAR_SCALE_PROBLEMS
from mondrian_bo.benchmarks.problems.mixed import MIXED_PROBLEMS
from mondrian_bo.benchmarks.problems.mixint import MIXINT_FUNCTIONS
from mondrian_bo.benchmarks.problems.noisy import NOISY_FUNCTIONS
from mondrian_bo.benchmarks.problems.numeric import NUMERIC_PROBLEMS
from mondrian_bo.benchmarks.problems.outcomes import OutcomeProblem
from mondrian_bo.benchmarks.problems.plateaus import PLATEAU_PROBLEMS
from mondrian_bo.benchmarks.problems.tabular import TABULAR_PROBLEMS
from mondrian_bo.benchmarks.problems.tradeoffs import TRADEOFF_PROBLEMS

__all__ = ["OUTCOME_PROBLEMS", "SUITES", "Suite"]

OUTCOME_PROBLEMS: tuple[OutcomeProblem, ...] = (
    *CONSTRAINED_PROBLEMS,
    *CONSTRAINED_FRONT_PROBLEMS,
    *FRONT_PROBLEMS,
    *TRADEOFF_PROBLEMS,
    *CONSTRAINED_COCO_PROBLEMS,
    *BIOBJECTIVE_PROBLEMS,
)
"""All problems with constraints, several objectives, or both."""


@dataclass(frozen=True)
class Suite:
    """Problems and how to run them.

    Attributes
    ----------
    problems : tuple of str
        Their names.
    n_seeds : int
        Default number of seeds (0, 1, ...).
    n_trials : int or None
        Default number of trials per run; None means each problem's budget.
    """

    problems: tuple[str, ...]
    n_seeds: int = 5
    n_trials: int | None = None


_LONG_GROUPS = ("smooth numeric", "rugged numeric", "irrelevant inputs", "mixed", "conditional")
"""Groups of the suite ``long``: cheap and without noise, so that 2,000 trials are worth running."""

SUITES: dict[str, Suite] = {
    "paper": Suite(("branin", "hartmann6", "svm_grid", "lda_grid")),
    "quality": Suite(("branin", "hartmann6", "branin10", "svm_grid", "lda_grid", "conditional")),
    "default": Suite(
        (
            *(problem.name for problem in NUMERIC_PROBLEMS),
            *TABULAR_PROBLEMS,
            *(problem.name for problem in MIXED_PROBLEMS),
            *(problem.name for problem in LEARNING_PROBLEMS),
            *(problem.name for problem in LARGER_LEARNING_PROBLEMS),
        ),
        n_seeds=20,
    ),
    "long": Suite(
        tuple(
            problem.name
            for problem in (*NUMERIC_PROBLEMS, *MIXED_PROBLEMS)
            if problem.group in _LONG_GROUPS
        ),
        n_seeds=20,
        n_trials=2000,
    ),
    "accuracies": Suite(tuple(problem.name for problem in ACCURACY_PROBLEMS), n_seeds=16),
    "categorical": Suite(tuple(problem.name for problem in CATEGORICAL_PROBLEMS), n_seeds=16),
    "linear_scales": Suite(tuple(problem.name for problem in LINEAR_SCALE_PROBLEMS), n_seeds=16),
    "plateaus": Suite(tuple(problem.name for problem in PLATEAU_PROBLEMS), n_seeds=24),
    "constrained": Suite(
        tuple(problem.name for problem in OUTCOME_PROBLEMS if problem.n_constraints),
        n_seeds=20,
    ),
    "multiobjective": Suite(
        tuple(problem.name for problem in OUTCOME_PROBLEMS if not problem.n_constraints),
        n_seeds=20,
    ),
    "bayesmark": Suite(tuple(problem.name for problem in BAYESMARK_PROBLEMS), n_seeds=1),
    "bayesmark_quick": Suite(QUICK_TASKS, n_seeds=1),
    "bbob": Suite(tuple(problem.name for problem in BBOB_FUNCTIONS), n_seeds=15),
    "bbob_unseen": Suite(tuple(problem.name for problem in UNSEEN_FUNCTIONS), n_seeds=5),
    "mixint": Suite(tuple(problem.name for problem in MIXINT_FUNCTIONS), n_seeds=15),
    "noisy": Suite(tuple(problem.name for problem in NOISY_FUNCTIONS), n_seeds=15),
    "parallel": Suite(tuple(problem.name for problem in BBOB_PROBLEMS), n_seeds=16),
}
"""The suites by name, as the command line lists them."""

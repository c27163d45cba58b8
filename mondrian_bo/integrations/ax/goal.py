"""Ax optimization configs as linear expressions of metrics."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ax.adapter.adapter_utils import extract_objective_weight_matrix
from ax.adapter.transforms.derelativize import derelativize_bound
from ax.core.optimization_config import (
    MultiObjectiveOptimizationConfig,
    OptimizationConfig,
    PreferenceOptimizationConfig,
)
from ax.core.outcome_constraint import ComparisonOp, OutcomeConstraint
from ax.exceptions.core import UnsupportedError

Expression: TypeAlias = tuple[tuple[str, float], ...]
"""Signatures of metrics and their weights, in alphabetical order."""


@dataclass(frozen=True)
class Bound:
    """A constraint on outcomes: an expression is at most a bound, or at least if the sign is -1."""

    expression: Expression
    sign: float
    bound: float


@dataclass(frozen=True)
class Goal:
    """Objectives and constraints on outcomes.

    Attributes
    ----------
    objectives : tuple of (Expression, float)
        Expressions and signs; each expression times its sign is maximised.
    bounds : tuple of Bound
        Constraints.
    thresholds : tuple of float
        Values of the expressions that are just acceptable, for several objectives; NaN where none
        is given.
    """

    objectives: tuple[tuple[Expression, float], ...]
    bounds: tuple[Bound, ...]
    thresholds: tuple[float, ...] = ()


def read_goal(config: OptimizationConfig, baseline: Mapping[str, float]) -> Goal:
    """Translate an optimization config.

    Parameters
    ----------
    config : OptimizationConfig
        The config.
    baseline : mapping of str to float
        Known outcomes of the status quo by metric signature; relative constraints refer to them.

    Returns
    -------
    Goal
        The goal.

    Raises
    ------
    ax.exceptions.core.UnsupportedError
        If the config asks for preference learning, or if a relative constraint has no baseline.
    """
    if isinstance(config, PreferenceOptimizationConfig):
        raise UnsupportedError("Learnt preferences are not supported.")
    metrics = sorted(config.objective.metric_signatures)
    objectives = extract_objective_weight_matrix(config.objective, metrics)
    expressions = tuple(_canonical(list(zip(metrics, row, strict=True)))[:2] for row in objectives)
    thresholds = {}
    if isinstance(config, MultiObjectiveOptimizationConfig):
        for constraint in config.objective_thresholds:
            bound = _bound(constraint, baseline)
            thresholds[bound.expression] = bound.bound
    return Goal(
        expressions,
        tuple(_bound(constraint, baseline) for constraint in config.outcome_constraints),
        tuple(thresholds.get(expression, math.nan) for expression, _ in expressions)
        if thresholds
        else (),
    )


def _bound(constraint: OutcomeConstraint, baseline: Mapping[str, float]) -> Bound:
    """Translate a constraint on outcomes; a relative bound becomes an absolute one."""
    weights = [(signature, float(weight)) for signature, weight in constraint.metric_weights]
    bound = float(constraint.bound)
    if constraint.relative:
        bound = _absolute(weights, bound, baseline)
    expression, sign, scale = _canonical(weights)
    at_most = 1.0 if constraint.op == ComparisonOp.LEQ else -1.0
    return Bound(expression, sign * at_most, bound / (sign * scale))


def _canonical(
    weights: Iterable[tuple[str, float]],
) -> tuple[Expression, float, float]:
    """Return expression, sign and scale, whose product is the weighted sum.

    A single metric has weight 1, so that one model serves objective, constraints and predictions.
    """
    pairs = sorted((metric, float(weight)) for metric, weight in weights if weight != 0.0)
    if len(pairs) == 1:
        ((metric, weight),) = pairs
        return ((metric, 1.0),), 1.0 if weight > 0.0 else -1.0, abs(weight)
    return tuple(pairs), 1.0, 1.0


def _absolute(
    weights: Collection[tuple[str, float]], percent: float, baseline: Mapping[str, float]
) -> float:
    """Return the absolute bound for one that is relative to the status quo, in percent."""
    if not all(metric in baseline for metric, _ in weights):
        raise UnsupportedError(
            "A constraint is relative to the status quo, which has no outcomes yet: attach a "
            "baseline and its data first."
        )
    reference = sum(weight * baseline[metric] for metric, weight in weights)
    return float(derelativize_bound(bound=percent, sq_val=reference))

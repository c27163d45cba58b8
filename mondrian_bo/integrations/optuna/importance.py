"""Importance of parameters in an Optuna study, by functional analysis of variance."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import optuna
from optuna.importance import BaseImportanceEvaluator
from optuna.trial import FrozenTrial, TrialState

from mondrian_bo.integrations.optuna.study.study_checks import check_study
from mondrian_bo.integrations.optuna.study.trial_rows import TrialRows, trial_rows
from mondrian_bo.shared.argument_checks import check_callable, check_count, check_flag

if TYPE_CHECKING:
    from mondrian_bo.importance import Decomposition
    from mondrian_bo.importance.models import ModelName

_SURROGATES = ("gaussian_process", "forest")
"""Models whose variance can be decomposed."""


class StudyImportance(NamedTuple):
    """The variance of one target of a study, or of each objective that varies, in parts.

    Attributes
    ----------
    names : list of str
        The parameters to report.
    parts : list of (TrialRows, Decomposition)
        The space and the parts of each target. Shares are averages over the targets.
    """

    names: list[str]
    parts: list[tuple[TrialRows, Decomposition]]

    def shares(self, interactions: bool) -> dict[str, float]:
        """Return shares of the variance by parameter, in descending order.

        Parameters
        ----------
        interactions : bool
            Whether half of the interactions of each pair count, or main effects only.
        """
        shares = dict.fromkeys(self.names, 0.0)
        for known, decomposition in self.parts:
            found = decomposition.shares(interactions)
            for name, share in zip(known.space.names, found.tolist(), strict=True):
                if name in shares:
                    shares[name] += share / len(self.parts)
        return dict(sorted(shares.items(), key=lambda item: -item[1]))

    def pairs(self) -> dict[tuple[str, str], float]:
        """Return shares of interactions by pair of names, in descending order."""
        names = self.names
        shares = {(a, b): 0.0 for i, a in enumerate(names) for b in names[i + 1 :]}
        for known, found in self.parts:
            columns = {name: j for j, name in enumerate(known.space.names)}
            for a, b in shares:
                if a in columns and b in columns and found.variance > 0.0:
                    part = float(found.pairs[columns[a], columns[b]]) / found.variance
                    shares[a, b] += part / len(self.parts)
        return dict(sorted(shares.items(), key=lambda item: -item[1]))


class MondrianImportanceEvaluator(BaseImportanceEvaluator):
    """Importance of parameters: their shares of the variance of a model of the objective.

    The variance of the model's mean over the whole search space is divided into main effects of
    parameters, interactions of pairs, and higher ones (functional ANOVA). The trials may come from
    any sampler. Parameters count on the scale on which they are suggested: uniformly, or uniformly
    in the logarithm.

    Parameters
    ----------
    surrogate : {"gaussian_process", "forest"}, default="gaussian_process"
        The model. "gaussian_process" is the sampler's default model: its kernel is a mixture of
        products, so that main effects and pairs are integrals over one and two parameters. "forest"
        is a Mondrian forest, whose cells have constant values: all parts are exact, but the
        model itself learns a function more slowly.
    interactions : bool, default=False
        Whether each parameter's importance includes half of its interactions with each other one,
        or its main effect only, as in Optuna's ``FanovaImportanceEvaluator``.
    n_estimators : int or None, default=None
        Number of trees; None is 10 for the forest, and 2 for the Gaussian process, which has trees
        beyond 200 trials.
    seed : int, default=0
        Seed of the trees.

    Attributes
    ----------
    interactions : bool
        The argument.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described.

    Notes
    -----
    Of conditional parameters, the conditions are learnt from the trials as in
    :class:`mondrian_bo.MondrianSampler`. The measure draws all parameters independently, then
    leaves out those that are inactive. So a parameter of a rare branch has a small importance. A
    parameter that is missing for no visible reason counts as missing with the share of the trials
    that lack it. A parameter with a single possible value in each trial, but not the same one in
    all, has the range of all these values.

    Complete trials with finite values are used. With several objectives and no `target` the result
    is the average of the shares of each objective.

    The time of the Gaussian process is proportional to its trials and to the square of the number
    of parameters, after its fit; the time of the forest to the square of the trials.

    Examples
    --------
    >>> import optuna
    >>> from mondrian_bo import MondrianImportanceEvaluator
    >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    >>> def objective(trial):
    ...     x, y = trial.suggest_float("x", -1, 1), trial.suggest_float("y", -1, 1)
    ...     return x + 0.1 * y
    >>> study.optimize(objective, n_trials=30)
    >>> evaluator = MondrianImportanceEvaluator()
    >>> importance = optuna.importance.get_param_importances(study, evaluator=evaluator)
    >>> importance["x"] > 0.95
    True
    """

    def __init__(
        self,
        *,
        surrogate: ModelName = "gaussian_process",
        interactions: bool = False,
        n_estimators: int | None = None,
        seed: int = 0,
    ) -> None:
        if surrogate not in _SURROGATES:
            raise ValueError(f"`surrogate` must be one of {_SURROGATES}, got {surrogate!r}.")
        check_count("n_estimators", 1 if n_estimators is None else n_estimators, 1)
        check_count("seed", seed, 0)
        check_flag("interactions", interactions)
        self.interactions = interactions
        self._settings: dict[str, Any] = {
            "surrogate": surrogate,
            "n_estimators": n_estimators,
            "seed": seed,
        }

    def evaluate(
        self,
        study: optuna.Study,
        params: list[str] | None = None,
        *,
        target: Callable[[FrozenTrial], float] | None = None,
    ) -> dict[str, float]:
        """Return the importance of parameters.

        ``optuna.importance.get_param_importances(study, evaluator=...)`` calls this method.

        Parameters
        ----------
        study : optuna.Study
            The study.
        params : list of str or None, default=None
            The parameters to report; None is all that complete trials have. The model has all
            parameters in either case.
        target : callable or None, default=None
            What to explain, a function of a trial that returns a number; None is the value. Trials
            with NaN or an infinite number do not count.

        Returns
        -------
        dict
            Shares of the variance by parameter, in descending order. They sum to less than 1 where
            interactions are left out. All are 0 without variance, or with less than two trials.
            ``get_param_importances`` then divides 1 among the parameters, unless it is told
            ``normalize=False``.

        Raises
        ------
        ValueError
            If no complete trial has one of the parameters.
        TypeError
            If `study` is no study, `params` is not a list of names, or `target` is no function that
            returns numbers.
        """
        return importance_of(self, study, params, target).shares(self.interactions)

    def pairs(
        self,
        study: optuna.Study,
        params: list[str] | None = None,
        *,
        target: Callable[[FrozenTrial], float] | None = None,
    ) -> dict[tuple[str, str], float]:
        """Return the importance of interactions of pairs: their own shares of the variance.

        Parameters
        ----------
        study, params, target
            See :meth:`evaluate`.

        Returns
        -------
        dict
            Shares of the variance by pair of names, in descending order, without main effects.

        Raises
        ------
        TypeError, ValueError
            As :meth:`evaluate`.
        """
        return importance_of(self, study, params, target).pairs()


def importance_of(
    evaluator: MondrianImportanceEvaluator,
    study: optuna.Study,
    params: list[str] | None = None,
    target: Callable[[FrozenTrial], float] | None = None,
) -> StudyImportance:
    """Return what an evaluator's results are made of, after one decomposition of each target.

    Parameters
    ----------
    evaluator : MondrianImportanceEvaluator
        The evaluator.
    study, params, target
        See :meth:`MondrianImportanceEvaluator.evaluate`.

    Returns
    -------
    StudyImportance
        The parts of the variance, with methods `shares` and `pairs`.

    Raises
    ------
    TypeError, ValueError
        As :meth:`MondrianImportanceEvaluator.evaluate`.
    """
    names = _names(study, params)
    check_callable("target", target)
    targets = [partial(_value, number=k) for k in range(len(study.directions))]
    wanted = targets if target is None else [target]
    found = [_decompose_target(study, one, evaluator._settings) for one in wanted]
    return StudyImportance(names, [one for one in found if one is not None])


def _decompose_target(
    study: optuna.Study,
    target: Callable[[FrozenTrial], float],
    settings: dict[str, Any],
) -> tuple[TrialRows, Decomposition] | None:
    """Return all parts of the variance of one target, and the space that they refer to.

    Parameters
    ----------
    study : optuna.Study
        The study. Its complete trials with finite targets count.
    target : callable
        What to explain, a function of a trial that returns a float.
    settings : dict
        Arguments of :func:`~mondrian_bo.importance.decompose` that choose the model.

    Returns
    -------
    (TrialRows, Decomposition) or None
        Mean, variances and curves are those of the target divided by its standard deviation,
        after its mean was subtracted. None with less than two trials or without parameters.

    Raises
    ------
    TypeError
        If `target` does not return numbers.
    """
    from mondrian_bo.importance import decompose

    check_study(study)
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    values = [_number(target, trial) for trial in trials]
    kept = [i for i, value in enumerate(values) if math.isfinite(value)]
    known = trial_rows([trials[i] for i in kept])
    if known is None or len(kept) < 2:
        return None
    targets = np.array([values[i] for i in kept])
    # Sums of the largest values would overflow. A power of two is an exact factor.
    targets = np.ldexp(targets, -np.frexp(np.abs(targets).max())[1])
    # The mean of equal values may differ from them by a rounding error.
    if (targets == targets[0]).all():
        return None
    targets -= targets.mean()
    targets /= np.abs(targets).max()
    targets /= targets.std()
    return known, decompose(known.space, known.rows, targets, **settings)


def _number(target: Callable[[FrozenTrial], float], trial: FrozenTrial) -> float:
    """Return the target of a trial; raise TypeError if it is not a number."""
    value: object = target(trial)
    if not isinstance(value, str | bytes):
        try:
            return float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            pass
    raise TypeError(
        f"`target` must return a number for each trial, got {value!r} for trial {trial.number}."
    )


def _value(trial: FrozenTrial, number: int) -> float:
    """Return one of the values of a complete trial."""
    return float(trial.values[number])


def _names(study: optuna.Study, params: list[str] | None) -> list[str]:
    """Return the names of the parameters to report, checked."""
    check_study(study)
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    known = list(dict.fromkeys(name for trial in trials for name in trial.distributions))
    if params is None:
        return known
    if not isinstance(params, list | tuple) or not all(isinstance(one, str) for one in params):
        raise TypeError(f"`params` must be a list of names, got {params!r}.")
    missing = [name for name in params if name not in known]
    if missing:
        raise ValueError(f"No complete trial has the parameters {missing}.")
    return list(params)

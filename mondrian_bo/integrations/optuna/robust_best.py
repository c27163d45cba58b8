"""The best trial of a noisy study, by the model's posterior."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from mondrian_bo.integrations.optuna.readable_sampler import ReadableSampler, check_reader, model_of
from mondrian_bo.integrations.optuna.sampler import MondrianSampler
from mondrian_bo.integrations.optuna.study.study_checks import check_study, sign_of
from mondrian_bo.integrations.optuna.study.trial_rows import finite_trials, is_feasible
from mondrian_bo.integrations.optuna.study_model import StudyModel
from mondrian_bo.search_space.space import row_gaps
from mondrian_bo.shared.array_types import FloatArray


def robust_best(study: optuna.Study, sampler: ReadableSampler | None = None) -> FrozenTrial:
    """Return the trial with the best predicted mean.

    If the objective is noisy, the value of ``study.best_trial`` is usually better than the mean at
    its point. Predicted means also use the values of neighbouring trials. Without noise both trials
    are nearly always the same.

    Parameters
    ----------
    study : optuna.Study
        A study with one objective, whichever sampler suggested its trials.
    sampler : MondrianSampler or None, default=None
        The sampler whose model is asked; None is the study's own, or the default
        :class:`mondrian_bo.MondrianSampler` if that has no model.

    Returns
    -------
    optuna.trial.FrozenTrial
        One of the complete trials with finite values; of those that violate no constraint, if there
        are any.

    Raises
    ------
    TypeError
        If `sampler` is another sampler.
    ValueError
        If the study has several objectives, or no complete trial with a finite value.

    Examples
    --------
    >>> import optuna
    >>> import numpy as np
    >>> from mondrian_bo import robust_best
    >>> rng = np.random.default_rng(0)
    >>> def objective(trial):
    ...     return trial.suggest_float("x", -1, 1) ** 2 + 0.3 * rng.normal()
    >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    >>> study.optimize(objective, n_trials=60)
    >>> abs(robust_best(study).params["x"]) < 0.3
    True
    """
    check_study(study)
    check_reader(sampler)
    if len(study.directions) > 1:
        raise ValueError("`robust_best` needs a single objective; `study.best_trials` has several.")
    trials = trials_to_choose(study)
    if not trials:
        raise ValueError("The study has no complete trial with a finite value.")
    sign = sign_of(study, 0)
    luckiest = _luckiest(trials, sign)
    try:
        model = asked_model(study, sampler)
    except ValueError:
        # No parameter varies.
        return luckiest
    accepted, rows = model.accepted(trials)
    if not accepted:
        return luckiest
    return accepted[best_predicted(model, accepted, rows, sign)]


def best_predicted(
    model: StudyModel, trials: Sequence[FrozenTrial], rows: FloatArray, sign: float
) -> int:
    """Return the position of the trial with the best predicted mean, of a single objective.

    Parameters
    ----------
    model : StudyModel
        The model.
    trials : sequence of m FrozenTrial
        The trials, m >= 1.
    rows : float64 array of shape (m, d)
        Their rows.
    sign : float
        1 if the objective is maximised, else -1.
    """
    means = sign * model.optimizer.predict_rows(rows)[0][:, 0]
    # Of equal means the best value counts. Those of a repeated point may differ by rounding errors.
    repeats = (row_gaps(rows, rows[int(np.argmax(means))]) == 0.0).all(axis=1)
    equal = np.flatnonzero(repeats | (means == means.max())).tolist()
    return int(max(equal, key=lambda i: _luck(trials[i], sign)))


def trials_to_choose(study: optuna.Study) -> list[FrozenTrial]:
    """Return the complete trials with finite values; feasible ones alone, if there are any."""
    complete = finite_trials(study)
    return [trial for trial in complete if is_feasible(trial)] or complete


def asked_model(study: optuna.Study, sampler: ReadableSampler | None) -> StudyModel:
    """Return the model of a sampler for a study; None is the study's own, or the default one."""
    if sampler is None:
        return model_of(study, MondrianSampler(seed=0))
    return sampler.read_model(study)


def _luckiest(trials: list[FrozenTrial], sign: float) -> FrozenTrial:
    """Return the trial with the best value, of equal ones the first."""
    return max(trials, key=lambda trial: _luck(trial, sign))


def _luck(trial: FrozenTrial, sign: float) -> tuple[float, int]:
    """Return what orders trials by their values, of equal ones the first as the largest."""
    return sign * trial.values[0], -trial.number

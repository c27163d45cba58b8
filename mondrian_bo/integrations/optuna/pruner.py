"""MondrianPruner: the model of learning curves as an Optuna pruner."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import optuna
from optuna.pruners import BasePruner
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from mondrian_bo.integrations.optuna.readable_sampler import fidelity_name_of
from mondrian_bo.integrations.optuna.study.comparable_trials import fidelity_key
from mondrian_bo.integrations.optuna.study.study_curves import (
    StudyCurves,
    is_noted_as_unordered,
    note_as_unordered,
    store_order,
)
from mondrian_bo.integrations.optuna.study.study_memory import RemembersStudies
from mondrian_bo.integrations.optuna.study.trial_feed import TrialFeed
from mondrian_bo.shared.argument_checks import check_count, check_number


class MondrianPruner(RemembersStudies["_CurveReader"], BasePruner):
    """Pruner that predicts how a trial will end, from the study's finished learning curves.

    A trial is pruned when the probability that it ends among the best is below a threshold times
    the share of its training that remains. The threshold is calibrated on the finished trials, so
    that few good ones would have been pruned. The pruner works with every sampler and storage, and
    with both directions.

    Parameters
    ----------
    threshold : float, default=0.1
        Largest probability, from 0 to 1, at which a trial is pruned while all of its training
        remains. In the middle of the training, half of this probability.
    alpha : float, default=0.1
        Largest share, at least 0 and below 1, of good finished trials that would have been pruned.
        See the notes.
    n_best : int, default=1
        Number of trials that count as the best: a trial is pruned if it will probably not end
        among them. A larger number prunes later.
    n_startup_trials : int, default=3
        Number of complete trials with reports before which nothing is pruned; at least 3.
    n_warmup_steps : int, default=1
        First step at which a trial may be pruned. Steps start at 0.
    patience : int or None, default=20
        Largest number of trials, at least 1, that one worker prunes in a row; the next one goes on.
        None is no limit. See the notes.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described.

    Notes
    -----
    The value of a trial may be its last report, the mean of its reports (as in a cross-validation),
    or the best of them: a regression learns it from the complete trials. Trials may report at
    different steps, with gaps, and may have different lengths. At each step a trial is compared
    with the complete trials that went on beyond it; with fewer than 3 of them it is not pruned.

    If the study's sampler is a :class:`mondrian_bo.MondrianSampler` with a `fidelity`, a trial is
    compared with trials of the same fidelity only. "The best", the threshold, `n_startup_trials`
    and `patience` are those of these trials.

    The share of its training that remains is the mean share of the reports of complete trials that
    lie beyond its step. Near the end of a trial a small probability is worth the steps that remain.

    *What is guaranteed.* Take the better half of the complete trials. Predict each of them at each
    step from the others, and ask with which probability it ends better than it did. At most the
    share `alpha` of them gets, at any step, a probability below the calibrated threshold times the
    share that remains. So at most this share would have been pruned if the best result had been as
    good as their own. A new trial that is exchangeable with the n trials of that half is pruned in
    the same sense with a probability of about ``(alpha * n + 1) / (n + 1)`` at most. Trials of a
    sampler that learns are not exchangeable, as later ones are better. The last 128 complete trials
    count, and the threshold is calibrated again when their number has grown by a tenth.

    *No study prunes for ever.* Pruned trials do not show how they would have ended, so a model that
    is wrong would stay wrong if all trials were pruned. After `patience` trials were pruned since
    the last complete one, the next trial goes on to its end, and the model learns how it ends. With
    several workers this is the oldest running trial. The second oldest follows after twice as many
    pruned trials, and so on, so that a dead worker does not delay the others.

    A trial whose latest report is NaN, or infinitely bad, is pruned, unless a complete trial of the
    better half reported the same. If a trial reports its steps out of order, as folds or instances
    that are shuffled, the number of reports takes the place of the step in the whole study. This is
    stored once as a system attribute of the study, because some storages sort reports. On such a
    storage the order of a trial's reports, of the first 150 of them, is an attribute of the trial.

    The pruner does not learn pruned trials, as their ends are unknown. The time of a call grows
    with the number of new reports and of new trials only.

    Examples
    --------
    >>> import optuna
    >>> from mondrian_bo import MondrianPruner, MondrianSampler
    >>> study = optuna.create_study(sampler=MondrianSampler(seed=0), pruner=MondrianPruner())
    >>> def objective(trial):
    ...     rate = trial.suggest_float("rate", 0.1, 1.0)
    ...     for epoch in range(20):
    ...         loss = (rate - 0.7) ** 2 + (1.0 - 0.5 * rate) ** epoch
    ...         trial.report(loss, epoch)
    ...         if trial.should_prune():
    ...             raise optuna.TrialPruned
    ...     return loss
    >>> study.optimize(objective, n_trials=20)
    >>> any(trial.state == optuna.trial.TrialState.PRUNED for trial in study.trials)
    True
    """

    def __init__(
        self,
        *,
        threshold: float = 0.1,
        alpha: float = 0.1,
        n_best: int = 1,
        n_startup_trials: int = 3,
        n_warmup_steps: int = 1,
        patience: int | None = 20,
    ) -> None:
        _check_share("threshold", threshold)
        _check_share("alpha", alpha)
        if alpha == 1.0:
            raise ValueError("`alpha` must be below 1.")
        check_count("n_best", n_best, 1)
        check_count("n_startup_trials", n_startup_trials, 3)
        check_count("n_warmup_steps", n_warmup_steps, 0)
        if patience is not None:
            check_count("patience", patience, 1)
        self._patience = math.inf if patience is None else int(patience)
        self._settings: dict[str, Any] = {
            "threshold": float(threshold),
            "alpha": float(alpha),
            "n_best": int(n_best),
            "n_startup_trials": int(n_startup_trials),
            "n_warmup_steps": int(n_warmup_steps),
        }
        RemembersStudies.__init__(self)

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Judge whether a trial should be pruned, as :class:`optuna.pruners.BasePruner` says.

        Parameters
        ----------
        study : optuna.Study
            Its study.
        trial : FrozenTrial
            The trial, with its reports so far.

        Returns
        -------
        bool
            Whether it should be pruned.

        Raises
        ------
        RuntimeError
            If the study has several objectives, as with Optuna's pruners.
        """
        name = fidelity_name_of(study)
        purpose = () if name is None else (name,)
        with self._lock:
            reader = self._recall(study, partial(_CurveReader, self._settings, name), *purpose)
            reader.read(study)
            group = reader.group_of(trial)
            curve = group.curves.running(trial)
            reader.share_disorder(study, trial)
            is_exempt = group.n_pruned >= self._patience * (1 + reader.n_older(trial))
            return group.curves.model.should_stop(curve, is_exempt)


class _Group:
    """Trials of one fidelity, which are compared with each other.

    Parameters
    ----------
    curves : StudyCurves
        Their learning curves.

    Attributes
    ----------
    n_pruned : int
        Number of these trials pruned since the last complete one.
    """

    def __init__(self, curves: StudyCurves) -> None:
        self.curves = curves
        self.n_pruned = 0


class _CurveReader:
    """Reads the learning curves of one study.

    Parameters
    ----------
    settings : dict
        Arguments of :class:`~mondrian_bo.optimizer.learning_curves.learning_curves.CurveSettings`.
    fidelity : str or None
        Name of the fidelity; None if all trials are comparable.
    """

    def __init__(self, settings: dict[str, Any], fidelity: str | None) -> None:
        self._settings = settings
        self._fidelity = fidelity
        self._feed = TrialFeed()
        self._groups: dict[str | None, _Group] = {}
        self._maximize = False
        self._is_noted = False
        self._running: dict[int, FrozenTrial] = {}

    def read(self, study: optuna.Study) -> None:
        """Read new complete trials, in the order in which they finished; O(new and running)."""
        feed = self._feed.read(study)
        if feed.is_new:
            self._groups, self._is_noted = {}, False
            self._maximize = study.direction == StudyDirection.MAXIMIZE
        for trial in feed.finished:
            group = self.group_of(trial)
            if trial.state == TrialState.COMPLETE:
                group.n_pruned = 0
                group.curves.learn(trial)
            else:
                group.n_pruned += trial.state == TrialState.PRUNED
                group.curves.forget(trial)
        if not self._is_noted and (feed.is_new or feed.finished) and is_noted_as_unordered(study):
            self._note_disorder()
        self._running = {trial.number: trial for trial in feed.running}
        self._feed.acknowledge()

    def group_of(self, trial: FrozenTrial) -> _Group:
        """Return the trials that a trial is compared with."""
        key = fidelity_key(trial, self._fidelity)
        if key not in self._groups:
            self._groups[key] = _Group(StudyCurves(self._settings, self._maximize))
            if self._is_noted:
                self._groups[key].curves.note_disorder()
        return self._groups[key]

    def _note_disorder(self) -> None:
        """Count reports in place of steps in the whole study."""
        self._is_noted = True
        for group in self._groups.values():
            group.curves.note_disorder()

    def share_disorder(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Store for all readers that steps are reported out of order, and the order of a trial."""
        if not self.group_of(trial).curves.counts_reports:
            return
        if not self._is_noted:
            note_as_unordered(study)
            self._note_disorder()
        if trial.number in self._running:
            store_order(study, trial, self._running[trial.number])

    def n_older(self, trial: FrozenTrial) -> int:
        """Return the number of comparable running trials that began before a trial."""
        key = fidelity_key(trial, self._fidelity)
        return sum(
            number < trial.number and fidelity_key(one, self._fidelity) == key
            for number, one in self._running.items()
        )


def _check_share(name: str, value: float) -> None:
    check_number(name, value)
    if not 0.0 <= float(value) <= 1.0:
        raise ValueError(f"`{name}` must be between 0 and 1, got {value!r}.")

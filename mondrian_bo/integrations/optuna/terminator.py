"""MondrianTerminator: stops a study when the model expects too little from more trials."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.trial import FrozenTrial
from tqdm.auto import tqdm

from mondrian_bo.integrations.optuna.readable_sampler import model_of
from mondrian_bo.integrations.optuna.robust_best import trials_to_choose
from mondrian_bo.integrations.optuna.sampler import MondrianSampler
from mondrian_bo.integrations.optuna.study.fixed_values import fixed_part, unwrapped
from mondrian_bo.integrations.optuna.study.study_checks import check_single_objective, check_study
from mondrian_bo.optimizer.stopping.cautious_model import Caution
from mondrian_bo.shared.argument_checks import (
    check_count,
    check_flag,
    check_number,
    is_integer,
    is_number,
)
from mondrian_bo.shared.forks import HasLock

TERMINATOR_KEY = "mondrian:terminator"
"""Name of the study's user attribute with the latest estimate."""

_N_DRAWS = 512
"""Functions drawn from the posterior for an estimate: probabilities have errors of 1 % or less at
the default of 5 %."""

_TRIALS_PER_PARAMETER = 5
"""Trials of patience for each parameter: a search of more parameters finds a basin later."""

_LEAST_PATIENCE, _MOST_PATIENCE = 20, 50
"""Bounds of the default patience in trials."""

_FEWEST_EQUAL = 10
"""Number of trials from which on equal values are those of a constant objective, our choice."""

_logger = optuna.logging.get_logger(__name__)


class GainEstimate(NamedTuple):
    """What the model expects from more trials.

    Attributes
    ----------
    n_trials : int
        Number of finished trials.
    expected_gain : float
        Mean of the regret of the trial with the best predicted mean, in the objective's units.
    probability : float
        Probability that this regret is above the tolerance; NaN without one. While a branch of a
        conditional space has too few trials, both are guesses that satisfy no rule.
    satisfied_since : int or None
        Number of finished trials since which all estimates satisfy the rule; None if the latest
        does not.
    patience : int
        Number of trials for which all estimates must satisfy the rule.
    """

    n_trials: int
    expected_gain: float
    probability: float
    satisfied_since: int | None
    patience: int


class MondrianTerminator(HasLock):
    """Callback that stops a study when little is left to gain.

    The regret of a trial is the difference between the optimum and the trial's expected value. A
    posterior gives its distribution for the trial with the best predicted mean, which is
    :func:`mondrian_bo.robust_best`. The study stops when the regret satisfies the rule in all
    estimates of the last `patience` trials. Any sampler may suggest the trials.

    Parameters
    ----------
    tolerance : float or None, default=None
        A regret that is acceptable, in the units of the objective, > 0. The study stops when a
        larger one has at most the stated `probability`.
    probability : float, default=0.05
        See `tolerance`; in (0, 1).
    expected_gain : float or None, default=None
        The study stops when the mean of the regret is at most this, > 0. Exactly one of `tolerance`
        and `expected_gain` must be given.
    min_trials : int, default=20
        Number of finished trials before the first estimate, >= 1. While all values are equal, ten
        of them must be finite.
    patience : int or None, default=None
        Number of trials for which all estimates must satisfy the rule, >= 0. Meanwhile the search
        explores, and may find a basin that the model did not expect. None is 5 for each parameter,
        at least 20 and at most 50.
    interval : int, default=5
        An estimate is made each time that so many trials have finished.
    noisy : bool, default=False
        Whether the objective has noise. If not, differences between trials that the model does not
        follow count as structure, in which better points may lie: a study with large ones does not
        stop.
    show : bool, default=True
        Whether to show the estimate in Optuna's progress bar, which has no room for it where
        ``study.optimize`` has a timeout.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described. During a study: if it has several objectives.

    Notes
    -----
    The model of the search is too certain far from its best trials. So the regret is that of a more
    careful model: 0.4 of the lengthscales, wider deviations where the basin of the best trial could
    not be foreseen from the other trials, candidates that differ by what the model takes for noise
    (unless `noisy`), and a model of each branch of a conditional space. A branch with fewer than
    five trials for each of its numbers keeps the study from stopping. Basins that no trial has met
    may still be missed: ``docs/reading.md`` has the measured shares of stops whose regret is within
    the tolerance.

    ``study.user_attrs["mondrian:terminator"]`` holds the latest estimate, so that a resumed study
    goes on where it was: `n_trials`, `expected_gain`, `probability` (if there is a tolerance),
    `satisfied_since` and `patience`. A second attribute, whose name ends with the rule, keeps apart
    the estimates of terminators with other rules. An estimate takes some 0.1 s.

    Examples
    --------
    >>> import optuna
    >>> from mondrian_bo import MondrianSampler, MondrianTerminator
    >>> study = optuna.create_study(sampler=MondrianSampler(seed=0))
    >>> def objective(trial):
    ...     return (trial.suggest_float("x", -5, 5) - 2) ** 2
    >>> study.optimize(objective, n_trials=200, callbacks=[MondrianTerminator(tolerance=0.01)])
    >>> len(study.trials) < 100
    True
    """

    def __init__(
        self,
        tolerance: float | None = None,
        probability: float = 0.05,
        *,
        expected_gain: float | None = None,
        min_trials: int = 20,
        patience: int | None = None,
        interval: int = 5,
        noisy: bool = False,
        show: bool = True,
    ) -> None:
        if (tolerance is None) == (expected_gain is None):
            raise ValueError("Exactly one of `tolerance` and `expected_gain` must be given.")
        for name, size in (("tolerance", tolerance), ("expected_gain", expected_gain)):
            if size is not None:
                check_number(name, size)
                if not 0.0 < size < math.inf:
                    raise ValueError(f"`{name}` must be positive and finite, got {size!r}.")
        check_number("probability", probability)
        if not 0.0 < probability < 1.0:
            raise ValueError(f"`probability` must be in (0, 1), got {probability!r}.")
        for name, least, number in (
            ("min_trials", 1, min_trials),
            ("patience", 0, 0 if patience is None else patience),
            ("interval", 1, interval),
        ):
            check_count(name, number, least)
        check_flag("noisy", noisy)
        check_flag("show", show)
        # Storages write numbers of Python only.
        self._tolerance = None if tolerance is None else float(tolerance)
        self._probability = float(probability)
        self._expected_gain = None if expected_gain is None else float(expected_gain)
        self._min_trials = int(min_trials)
        self._patience = None if patience is None else int(patience)
        self._interval = int(interval)
        self._caution = Caution(structure=not noisy)
        if tolerance is not None:
            rule = f"tolerance={self._tolerance},probability={self._probability}"
        else:
            rule = f"expected_gain={self._expected_gain}"
        # An estimate says since when one rule is satisfied: that of another one counts apart.
        self._own_key = f"{TERMINATOR_KEY}:{rule},noisy={noisy}"
        self._show = show
        self._fallback = MondrianSampler(seed=0)
        super().__init__()

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Stop the study if :meth:`should_terminate` says so; for ``study.optimize``."""
        if self.should_terminate(study):
            _logger.info("The study is stopped: the model expects too little from more trials.")
            study.stop()

    def should_terminate(self, study: optuna.Study) -> bool:
        """Return whether the rule is satisfied, after an estimate if one is due.

        Parameters
        ----------
        study : optuna.Study
            A study of any sampler. An estimate is stored in its user attributes.

        Returns
        -------
        bool
            True if all estimates of the last `patience` trials satisfy the rule.

        Raises
        ------
        TypeError, ValueError
            If `study` is no study, or has several objectives.
        """
        check_single_objective(study, "MondrianTerminator")
        with self._lock:
            trials = study.get_trials(deepcopy=False)
            n_trials = sum(trial.state.is_finished() for trial in trials)
            latest = stored_estimate(study, self._own_key)
            if latest is not None and self._patience is not None:
                latest = latest._replace(patience=self._patience)
            if n_trials < self._min_trials:
                return False
            if latest is None or not 0 <= n_trials - latest.n_trials < self._interval:
                latest = self._estimate(study, n_trials, latest)
            if latest is None or latest.satisfied_since is None:
                return False
            return latest.n_trials - latest.satisfied_since >= latest.patience

    def latest(self, study: optuna.Study) -> GainEstimate | None:
        """Return the latest estimate that is stored on a study, by whichever terminator.

        Parameters
        ----------
        study : optuna.Study
            The study.

        Returns
        -------
        GainEstimate or None
            The estimate; None before the first one, and if the attribute holds something else.

        Raises
        ------
        TypeError
            If `study` is no study.
        """
        check_study(study)
        return stored_estimate(study)

    def _estimate(
        self, study: optuna.Study, n_trials: int, latest: GainEstimate | None
    ) -> GainEstimate | None:
        """Estimate the gain and store the estimate; None while too little is known for one."""
        try:
            model = model_of(study, self._fallback)
        except ValueError:
            # No trial has a value yet.
            return None
        values = [trial.outcomes[0] for trial in model.reader.finished]
        finite = [value for value in values if math.isfinite(value)]
        if len(finite) < _FEWEST_EQUAL and len(set(finite)) < 2:
            return None
        # The regret is that of a trial that a user may take: not of a pruned one.
        usable, rows = model.accepted(trials_to_choose(study))
        if not usable:
            return None
        optimizer = model.optimizer
        # A better trial has the values that a `PartialFixedSampler` sets.
        fixed = unwrapped(study)[1]
        within = fixed_part(fixed, model.reader.distributions, optimizer.space)
        gain = optimizer.remaining_gain(_N_DRAWS, self._caution, rows, within)
        if gain is None:
            return None
        expected, probability = gain.mean, math.nan
        if self._tolerance is not None:
            probability = float(np.mean(gain.regrets > self._tolerance))
            satisfied = probability <= self._probability
        else:
            assert self._expected_gain is not None
            satisfied = expected <= self._expected_gain
        satisfied &= gain.is_known
        patience = self._patience
        if patience is None:
            patience = default_patience(optimizer.space.n_dimensions)
        since = None
        if satisfied:
            since = n_trials
            if latest is not None and latest.satisfied_since is not None:
                since = min(latest.satisfied_since, n_trials)
        stored: dict[str, Any] = {
            "n_trials": n_trials,
            "expected_gain": expected,
            "satisfied_since": since,
            "patience": patience,
        }
        text = f"expected gain {expected:.3g}"
        if self._tolerance is not None:
            stored["probability"] = probability
            text = f"gain > {self._tolerance:g}: {probability:.0%}"
        if not gain.is_known:
            text = "gain unknown: a branch has few trials"
        for key in (self._own_key, TERMINATOR_KEY):
            study.set_user_attr(key, stored)
        if self._show:
            _show_in_progress_bar(text)
        return GainEstimate(n_trials, expected, probability, since, patience)


def stored_estimate(study: optuna.Study, key: str = TERMINATOR_KEY) -> GainEstimate | None:
    """Return the estimate of a user attribute of a study.

    None if there is none, or one that contradicts itself: whoever writes to the study may have put
    anything there.
    """
    stored = study._storage.get_study_user_attrs(study._study_id).get(key)
    if not isinstance(stored, dict):
        return None
    found = GainEstimate(
        stored.get("n_trials", -1),
        stored.get("expected_gain", math.nan),
        stored.get("probability", math.nan),
        stored.get("satisfied_since", -1),
        stored.get("patience", -1),
    )
    since = 0 if found.satisfied_since is None else found.satisfied_since
    counts = found.n_trials, since, found.patience
    if not all(is_integer(one) and one >= 0 for one in counts) or since > found.n_trials:
        return None
    if not is_number(found.expected_gain) or not is_number(found.probability):
        return None
    is_possible = math.isnan(found.probability) or 0.0 <= found.probability <= 1.0
    return found if is_possible and 0.0 <= found.expected_gain < math.inf else None


def default_patience(n_parameters: int) -> int:
    """Return the default patience, in trials, in a space of so many parameters."""
    return min(max(_TRIALS_PER_PARAMETER * n_parameters, _LEAST_PATIENCE), _MOST_PATIENCE)


def _show_in_progress_bar(text: str) -> None:
    """Write a text at the end of Optuna's progress bars, which Optuna does not hand out."""
    for bar in list(getattr(tqdm, "_instances", ())):
        # The description that Optuna sets once there is a complete trial.
        if str(getattr(bar, "desc", "")).startswith("Best trial: "):
            bar.set_postfix_str(text)

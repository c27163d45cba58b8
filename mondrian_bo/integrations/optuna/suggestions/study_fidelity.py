"""The fidelity of an Optuna study: its parameter, the costs of trials, and the best trial."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from mondrian_bo.integrations.optuna.study.distributions import ROUNDING, to_parameter
from mondrian_bo.integrations.optuna.study.study_checks import (
    check_argument_fits,
    check_single_objective,
    sign_of,
)
from mondrian_bo.integrations.optuna.study.study_reader import N_WITHOUT, FinishedTrial, StudyReader
from mondrian_bo.integrations.optuna.study.trial_rows import is_feasible
from mondrian_bo.optimizer.fidelities.fidelity import (
    SAME_FIDELITY,
    FidelityChoice,
    check_fidelity,
    turn_of,
)
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.array_types import FloatArray


class StudyFidelity:
    """The arguments `fidelity` and `cost` of the sampler.

    Parameters
    ----------
    fidelity : str, mapping of str to float, or None
        Name of a parameter, which may have a target.
    cost : str or None
        Name of the user attribute of the cost.
    has_earlier : bool
        Whether the sampler has earlier studies.

    Attributes
    ----------
    name : str
        The parameter.

    Raises
    ------
    TypeError, ValueError
        If the arguments are not as described, there is a cost without a fidelity, or a fidelity
        with earlier studies.
    """

    def __init__(
        self, fidelity: FidelityChoice | None, cost: str | None, has_earlier: bool
    ) -> None:
        if fidelity is None:
            raise ValueError("`cost` needs a `fidelity`.")
        if has_earlier:
            raise ValueError("`fidelity` cannot be combined with `warm_start`.")
        if not isinstance(cost, str | None):
            raise TypeError(f"`cost` must be the name of a user attribute or None, got {cost!r}.")
        self.name, self._target = check_fidelity(fidelity)
        self._cost = cost
        # Readers of the studies whose trials have been checked.
        self._checked: WeakSet[StudyReader] = WeakSet()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what cannot be pickled; a copy warns again."""
        return {name: value for name, value in vars(self).items() if name != "_checked"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _checked=WeakSet())

    @property
    def choice(self) -> FidelityChoice:
        """The name, or name and target."""
        return self.name if self._target is None else {self.name: self._target}

    def check(self, study: optuna.Study) -> None:
        """Raise a `ValueError` if the study has several objectives."""
        check_argument_fits(study, "fidelity")

    def within(self, space: SearchSpace) -> FidelityChoice | None:
        """Return the fidelity for an optimizer over a space; None while it has no such parameter.

        The space lacks parameters that had a single value so far.
        """
        return self.choice if self.name in space else None

    def first_value(
        self, number: int, name: str, distribution: BaseDistribution, default: Any
    ) -> Any:
        """Return a first fidelity if `name` is the fidelity, and `default` otherwise.

        The first trial has the cheapest fidelity. While no trial has completed, later ones may have
        the middle of the range or the target, as those of `FidelitySearch`: the cheapest fidelity
        may always fail.

        Parameters
        ----------
        number : int
            Number of the trial in the study.
        name : str
            The parameter.
        distribution : BaseDistribution
            Its distribution.
        default : object
            The value of any other parameter.

        Raises
        ------
        ValueError
            If the distribution is categorical, or the target is not one of its values.
        """
        if name != self.name:
            return default
        if not isinstance(distribution, FloatDistribution | IntDistribution):
            raise ValueError(f"`fidelity`: {name!r} must come from suggest_int or suggest_float.")
        low, high = distribution.low, distribution.high
        target = high if self._target is None else self._target
        if not low <= target <= high:
            raise ValueError(f"`fidelity`: the target {target!r} of {name!r} is out of its range.")
        parameter = to_parameter(distribution)
        if parameter is None:
            # The range has a single value.
            return low
        try:
            parameter.to_unit(target)
        except (TypeError, ValueError):
            raise ValueError(
                f"`fidelity`: the target {target!r} of {name!r} is no value of {distribution}."
            ) from None
        cheapest = low if target > low else high
        turn = turn_of(number)
        if turn == 1:
            return cheapest
        return target if turn > 2 else parameter.from_unit(0.5)

    def _warn_of_absence(self, reader: StudyReader) -> None:
        """Warn once a study, after some trials, if none has the parameter or the cost."""
        if reader in self._checked or len(reader.finished) < N_WITHOUT:
            return
        self._checked.add(reader)
        known = reader.names()
        if self.name not in known:
            _warn(f"`fidelity`: no trial has the parameter {self.name!r}", known)
        attributes = {name for trial in reader.finished for name in trial.attributes}
        if self._cost is not None and self._cost not in attributes:
            _warn(f"`cost`: no trial has the user attribute {self._cost!r}", attributes)

    def costs_of(self, trials: Sequence[FinishedTrial], reader: StudyReader) -> FloatArray:
        """Return the costs of m trials, shape (m,); NaN where there is no positive number.

        Warns once if none of ten or more trials of the study has the parameter or the attribute.
        """
        self._warn_of_absence(reader)
        costs = np.full(len(trials), np.nan)
        if self._cost is not None:
            for i, trial in enumerate(trials):
                cost = trial.attributes.get(self._cost)
                # True is no cost, although it is an int.
                if isinstance(cost, int | float | np.number) and cost is not True and cost > 0:
                    # An integer may be too large for a float.
                    with contextlib.suppress(OverflowError):
                        costs[i] = float(cost)
        return costs


def _warn(problem: str, known: Iterable[str]) -> None:
    """Warn that an argument has no effect, with the names that the trials have."""
    warnings.warn(
        f"{problem} so far, and the argument has no effect; the trials have {sorted(known)}.",
        UserWarning,
        stacklevel=2,
    )


def best_at_target(study: optuna.Study, fidelity: FidelityChoice) -> FrozenTrial:
    """Return the best trial at the target fidelity.

    ``study.best_trial`` compares trials of all fidelities.

    Parameters
    ----------
    study : optuna.Study
        A study with one objective, whichever sampler suggested its trials.
    fidelity : str or mapping of str to float
        As in :class:`mondrian_bo.MondrianSampler`: the name of a parameter, or its name and target.
        Without a target, that is the upper end of the parameter's range in the latest trial that
        has it (the lower end of a range is a target like any other).

    Returns
    -------
    optuna.trial.FrozenTrial
        One of the complete trials that have the target as value of the parameter, or that lack the
        parameter, as in a conditional space; of those that violate no constraint.

    Raises
    ------
    TypeError, ValueError
        If `study` is no study, `fidelity` is not as described, the study has several objectives, no
        trial has the parameter, or there is no such complete trial.

    Examples
    --------
    >>> import optuna
    >>> from mondrian_bo import MondrianSampler, best_at_target
    >>> def objective(trial):
    ...     n_epochs = trial.suggest_int("n_epochs", 1, 50, log=True)
    ...     rate = trial.suggest_float("rate", 0, 1)
    ...     return (rate - 0.3) ** 2 + 1 / n_epochs
    >>> study = optuna.create_study(sampler=MondrianSampler(seed=0, fidelity="n_epochs"))
    >>> study.optimize(objective, n_trials=15)
    >>> best_at_target(study, "n_epochs").params["n_epochs"]
    50
    """
    check_single_objective(study, "best_at_target")
    name, target = check_fidelity(fidelity)
    trials = study.get_trials(deepcopy=False)
    having = [one.distributions[name] for one in trials if name in one.distributions]
    if not having:
        raise ValueError(f"The study has no trial with the parameter {name!r}.")
    end = _high(having[-1])
    target = end if target is None else target
    found = [
        trial
        for trial in trials
        if trial.state == TrialState.COMPLETE
        and (
            name not in trial.params
            or _is_same(trial.params[name], target, trial.distributions[name])
        )
        and is_feasible(trial)
    ]
    if not found:
        raise ValueError(f"The study has no complete feasible trial with {name!r} at {target!r}.")
    sign = sign_of(study, 0)
    return max(found, key=lambda trial: (sign * trial.values[0], -trial.number))


def _is_same(value: Any, target: float, distribution: BaseDistribution) -> bool:
    """Return whether a trial's value is the target: exactly, or a float up to rounding errors."""
    if not isinstance(distribution, FloatDistribution):
        # Storages keep integers as floats.
        return float(value) == float(target)
    low, high = distribution.low, distribution.high
    if distribution.log:
        share = SAME_FIDELITY * (math.log(high) - math.log(low)) + ROUNDING
        return math.isclose(value, target, rel_tol=share)
    # The difference of the ends may overflow.
    tolerance = SAME_FIDELITY * high - SAME_FIDELITY * low
    if distribution.step is not None:
        tolerance = min(tolerance, 0.25 * distribution.step)
    return bool(abs(value - target) <= tolerance + ROUNDING * max(abs(low), abs(high)))


def _high(distribution: BaseDistribution) -> float:
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        raise ValueError("A fidelity must come from suggest_int or suggest_float.")
    return distribution.high

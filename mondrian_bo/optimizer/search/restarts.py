"""A search that restarts when it has collapsed on its incumbent."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mondrian_bo.optimizer.models.outcome_model import REFIT_GROWTH, OutcomeModel
from mondrian_bo.optimizer.pareto.pareto_trials import ParetoTrials
from mondrian_bo.optimizer.search.failed_trials import FailedTrials
from mondrian_bo.optimizer.search.search import Search
from mondrian_bo.optimizer.search.search_factory import SearchFactory
from mondrian_bo.optimizer.shared.search_trials import SearchTrials
from mondrian_bo.optimizer.shared.trials import Trials
from mondrian_bo.search_space.space import row_gaps
from mondrian_bo.shared.array_types import BoolArray, FloatArray
from mondrian_bo.shared.float_range import SHRINK

_NEAR = 0.02
"""Largest difference of a number between near rows, in sides of the unit cube; our choice.
Different categories differ by 1 or more."""

_LEAST_GAIN = 1e-3
"""Largest difference of two values that count as equal, our choice: a share of the interquartile
range of all values or, if all columns are continuous, of the range of the best quarter, if that is
smaller."""

_COLLAPSED = 6
"""Pressure at which a search has collapsed: three trials in vain in a row, our choice. A trial in
vain adds 2, another trial that does not improve subtracts 1 (see :class:`RestartingSearch`)."""

_BACKOFF = 2
"""Factor of the next restart's pressure after a restart without a gain: restarts become rarer. When
the search over all trials has stalled, factor of the patience: restarts become longer."""

_PATIENCE = 12
"""Trials without improvement of its own incumbent that end a restarted search; our choice."""

_LONG_PATIENCE = 24
"""The same for the first search that is restarted after the one over all trials has stalled."""

_STALLED = 100
"""Trials without any gain after which a search has stalled, our choice. It has nothing more to gain
near its incumbent, so restarts are more frequent, and longer."""

_FORMER_NAMES = {
    "n_in_vain": "n_without_gain",
    "n_still": "n_since_gain",
    "gained": "has_improved",
    "gain": "least_gain",
    "n_at_gain": "n_of_least_gain",
}
"""Present names of counts by those in pickles of earlier versions."""


@dataclass
class _Counts:
    """What decides when a search restarts: see :class:`RestartingSearch`.

    Attributes
    ----------
    n_searches : int
        Number of searches so far, the one over all trials among them.
    pressure : int
        Pressure of the current search.
    n_without_gain : int
        Number of trials since a restarted search has gained anything on its own incumbent.
    threshold : int
        Pressure at which the search over all trials restarts, unless it has stalled.
    n_since_gain : int
        Number of trials told to the search over all trials since its last gain.
    patience : int
        Patience of a search that is restarted after the other one has stalled.
    has_improved : bool
        Whether a restarted search has improved on the incumbent of all trials.
    least_gain, n_of_least_gain : float and int
        The least gain, and the number of trials from which it was computed.
    """

    n_searches: int = 1
    pressure: int = 0
    n_without_gain: int = 0
    threshold: int = _COLLAPSED
    n_since_gain: int = 0
    patience: int = _LONG_PATIENCE
    has_improved: bool = False
    least_gain: float = 0.0
    n_of_least_gain: int = 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; in pickles of earlier versions some counts have other names."""
        self.__dict__.update({_FORMER_NAMES.get(name, name): one for name, one in state.items()})


class _Comparison(NamedTuple):
    """A trial beside an incumbent.

    Attributes
    ----------
    improved : bool
        Whether it is better by more than the least gain.
    gained : bool
        Whether it is better at all.
    found_again : bool
        Whether it is near without an improvement.
    in_vain : bool
        Whether it is found again and has an equal value, or cannot be refined.
    """

    improved: bool
    gained: bool
    found_again: bool
    in_vain: bool

    def pressure(self, before: int, falls: bool = True) -> int:
        """Return the pressure after the trial, from that before it; it may not fall gradually."""
        if self.improved:
            return 0
        if self.in_vain:
            return before + 2
        return max(before - 1, 0) if falls else before


class SearchState(NamedTuple):
    """What identifies a former state of :class:`RestartingSearch`.

    Attributes
    ----------
    trials, own : TrialsState or ParetoState
        All trials, and those of the current search.
    n_failed, n_learnt : int
        Numbers of points of failed trials, and of failed trials that are learnt.
    current : Search
        The current search.
    counts : _Counts
        What decides when a search restarts.
    """

    trials: Any
    own: Any
    n_failed: int
    n_learnt: int
    current: Search
    counts: _Counts


class RestartingSearch:
    """A search over all trials and, at times, a restarted one that knows only its own trials.

    A search collapses when its model is certain of the rest of the space: it then suggests points
    near its incumbent only. A restarted search has a model of its own trials, and finds another
    basin or the same one.

    A trial near the incumbent is *in vain* if its value differs from the incumbent's by at most
    `_LEAST_GAIN` of the range of the values. Values are that close at the bottom of a smooth basin,
    where they differ by the square of the distance. If the value is clearly worse (at a cusp, on a
    ripple, in a bent valley), a gain is still possible and the trial is not in vain. A trial that
    differs from the incumbent only in numbers on grids cannot be refined: it is in vain if it does
    not improve.

    In a bent valley each gain is small compared with the interquartile range, although the search
    has not collapsed. If all columns are continuous, the smaller of this range and the range of the
    best quarter of the values is used. If some columns have grids, only the interquartile range is
    used, because other values on the grids promise more than small gains.

    A restarted search ends where it finds the incumbent of all trials again, where it collapses on
    its own incumbent, or after a number of trials without an improvement of its own. This number is
    small while the search over all trials still gains at times, as in a narrow valley, and larger
    once it has stalled.

    The state depends only on the trials told and on their order.

    Parameters
    ----------
    factory : SearchFactory
        Makes the searches.
    is_continuous : bool array of shape (d,)
        Which columns hold numbers without a grid.
    n_startup_trials : int
        Number of first trials of a restarted search that do not count against it.
    restarts : bool
        Whether the search restarts at all; one with several objectives never does.
    n_objectives : int, default=1
        Number K of objectives.
    reference : float64 array of shape (K,) or None, default=None
        Values below which nothing counts, NaN where not given; larger is better.

    Attributes
    ----------
    trials : SearchTrials
        All trials.
    current : Search
        The search that the next trial is for.
    whole : Search
        The search over all trials.
    failed : FailedTrials
        The trials that failed.
    """

    def __init__(
        self,
        factory: SearchFactory,
        is_continuous: BoolArray,
        n_startup_trials: int,
        restarts: bool,
        n_objectives: int = 1,
        reference: FloatArray | None = None,
    ) -> None:
        self._n_dimensions = len(is_continuous)
        self.trials: SearchTrials = (
            Trials(self._n_dimensions)
            if n_objectives == 1
            else ParetoTrials(self._n_dimensions, n_objectives, reference)
        )
        self.whole = factory.new(self.trials, 0)
        self.current = self.whole
        self._factory = factory
        self._is_continuous = is_continuous
        self._n_startup_trials = n_startup_trials
        self._restarts = restarts and n_objectives == 1
        self.failed = FailedTrials(self.trials)
        self._counts = _Counts()

    @property
    def models(self) -> list[OutcomeModel]:
        """The models of all arms of the present searches, in the order of their making."""
        return [one for search in self.searches for model, _ in search.arms for one in model.models]

    @property
    def searches(self) -> list[Search]:
        """The search over all trials and, if it is another one, the current search."""
        return [self.whole] if self.current is self.whole else [self.whole, self.current]

    @property
    def n_successes(self) -> int:
        """Number of trials told that did not fail."""
        return len(self.trials) - len(self.failed.learnt)

    def tell(
        self,
        rows: FloatArray,
        values: FloatArray,
        eligible: BoolArray | None = None,
        observed: FloatArray | None = None,
    ) -> None:
        """Add trials, one after the other.

        :class:`FailedTrials` decides what becomes of failed ones.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            The points; NaN at inactive parameters.
        values : float64 array of shape (m,), or (m, K) with several objectives
            Their values, larger is better; may be infinite, NaN for trials that failed.
        eligible : bool array of shape (m,) or None, default=None
            Which of them may be the incumbent unless they failed, see :meth:`Trials.tell`; None is
            all.
        observed : float64 array of shape (m, 2), or (m, K, 2), or None, default=None
            With known errors, the values as observed and these errors, see :class:`Trials`.
        """
        missing = np.isnan(values).reshape(len(values), math.prod(values.shape[1:]))
        failed: BoolArray = np.asarray(missing.any(axis=1))
        for i in range(len(values)):
            row = rows[i : i + 1]
            if not failed[i]:
                own = None if observed is None else observed[i : i + 1]
                self._tell(row, values[i : i + 1], eligible is None or bool(eligible[i]), own)
                continue
            imputed = self.failed.add(row)
            if imputed is not None:
                # It has no error that could differ from others.
                own = np.stack([imputed, np.full_like(imputed, np.nan)], axis=-1)
                self._tell(row, imputed, False, own)

    def state(self) -> SearchState:
        """Return what `restore` needs; O(1)."""
        return SearchState(
            self.trials.state(),
            self.current.trials.state(),
            len(self.failed.rows),
            len(self.failed.learnt),
            self.current,
            replace(self._counts),
        )

    def restore(self, state: SearchState) -> None:
        """Remove the trials told after a state; O(number of trials removed)."""
        self.trials.restore(state.trials)
        self.failed.restore(state.n_failed, state.n_learnt)
        self.current = state.current
        if self.current is not self.whole:
            self.current.trials.restore(state.own)
        self._counts = replace(state.counts)

    def forget(self) -> None:
        """Let all models learn their trials again when they are used next."""
        for search in self.searches:
            search.forget()

    def _tell(
        self, row: FloatArray, values: FloatArray, eligible: bool, observed: FloatArray | None
    ) -> None:
        """Add one trial, shape (1, d); start or end a restarted search if it is due."""
        if not self._restarts or len(self.trials) == 0:
            self.trials.tell(row, values, eligible, observed)
            return
        assert isinstance(self.trials, Trials)
        counts = self._counts
        # A trial that is not eligible is no gain, whatever its value.
        value = float(values[0]) if eligible else -np.inf
        beside = self._compare(row[0], value, eligible, self.trials)
        self.trials.tell(row, values, eligible, observed)
        if self.current is self.whole:
            counts.n_since_gain = 0 if beside.gained else counts.n_since_gain + 1
            has_stalled = counts.n_since_gain >= _STALLED
            counts.pressure = beside.pressure(counts.pressure, not has_stalled)
            if counts.pressure >= (_COLLAPSED if has_stalled else counts.threshold):
                self.current = self._factory.new(Trials(self._n_dimensions), counts.n_searches)
                counts.n_searches += 1
                counts.pressure = counts.n_without_gain = 0
                counts.has_improved = False
            return
        counts.has_improved = counts.has_improved or beside.improved
        own = self.current.trials
        assert isinstance(own, Trials)
        if len(own):
            beside_own = self._compare(row[0], value, eligible, own)
            counts.pressure = beside_own.pressure(counts.pressure)
            counts.n_without_gain = 0 if beside_own.gained else counts.n_without_gain + 1
        own.tell(row, values, eligible, observed)
        has_stalled = counts.n_since_gain >= _STALLED
        patience = counts.patience if has_stalled else _PATIENCE
        is_over = (
            beside.found_again or counts.pressure >= _COLLAPSED or counts.n_without_gain >= patience
        )
        if len(own) > self._n_startup_trials and is_over:
            self.current = self.whole
            counts.pressure = 0
            if counts.has_improved:
                counts.threshold, counts.patience = _COLLAPSED, _LONG_PATIENCE
                counts.n_since_gain = 0
            elif has_stalled:
                counts.patience *= _BACKOFF
            else:
                counts.threshold *= _BACKOFF

    def _compare(
        self, row: FloatArray, value: float, eligible: bool, trials: Trials
    ) -> _Comparison:
        """Compare a trial with the incumbent of some trials, of which there is one at least."""
        best_row, best_value, is_eligible = trials.best()
        if eligible and not is_eligible:
            best_value = -np.inf  # the first eligible trial is a gain, whatever its value
        # The difference of equal infinities would be NaN.
        gain = 0.0 if value == best_value else value - best_value
        least = self._least_gain()
        improved = gain > least
        gaps = row_gaps(row, best_row)
        found_again = not improved and bool((gaps <= _NEAR).all())
        in_vain = found_again and (
            gain >= -least or not bool((gaps[self._is_continuous] > 0.0).any())
        )
        return _Comparison(improved, gain > 0.0, found_again, in_vain)

    def _least_gain(self) -> float:
        """Return the largest difference of values that count as equal."""
        n_trials, counts = len(self.trials), self._counts
        # The range of many values changes slowly: O(1) per trial in the long run.
        if n_trials > REFIT_GROWTH * counts.n_of_least_gain:
            finite = self.trials.values[np.isfinite(self.trials.values)]
            finite = finite if len(finite) else np.zeros(1)
            lower, upper, best = np.percentile(SHRINK * finite, (25.0, 75.0, 100.0))
            size = upper - lower
            if self._is_continuous.all():
                size = min(size, best - upper)
            counts.least_gain = _LEAST_GAIN / SHRINK * float(size)
            counts.n_of_least_gain = n_trials
        return counts.least_gain

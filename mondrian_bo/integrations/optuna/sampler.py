"""MondrianSampler: the optimizer as an Optuna sampler."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import optuna
from optuna import _deprecated
from optuna._warnings import optuna_warn
from optuna.distributions import BaseDistribution
from optuna.samplers._base import _process_constraints_after_trial
from optuna.trial import FrozenTrial, TrialState

from mondrian_bo.integrations.optuna.readable_sampler import ReadableSampler
from mondrian_bo.integrations.optuna.study.distributions import nearest_number, rounded_number
from mondrian_bo.integrations.optuna.study.fixed_values import fixed_part, fixed_values, with_fixed
from mondrian_bo.integrations.optuna.study.proposals import note_replaced, proposed_values, publish
from mondrian_bo.integrations.optuna.study.study_memory import RemembersStudies
from mondrian_bo.integrations.optuna.study_model import StudyModel
from mondrian_bo.integrations.optuna.suggestions.told_study import ToldStudy
from mondrian_bo.integrations.optuna.suggestions.valid_points import (
    constants_beside,
    may_be_valid,
    valid_fixed,
)
from mondrian_bo.optimizer.search.portfolio import AcquisitionChoice, check_settings
from mondrian_bo.optimizer.shared.validation import MOST_OBJECTIVES
from mondrian_bo.search_space.lenient_encoding import encode_leniently
from mondrian_bo.shared.argument_checks import check_callable, is_integer
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.shared.garbage_collection import without_collections
from mondrian_bo.surrogates.registry import SurrogateName

if TYPE_CHECKING:
    from mondrian_bo.integrations.optuna.study.study_reader import FinishedTrial
    from mondrian_bo.integrations.optuna.suggestions.earlier_studies import EarlierStudies
    from mondrian_bo.integrations.optuna.suggestions.study_fidelity import StudyFidelity
    from mondrian_bo.optimizer.fidelities.fidelity import FidelityChoice
    from mondrian_bo.optimizer.row_optimizer import RowOptimizer

_Purpose: TypeAlias = Literal["suggesting", "reading"]
"""What a model of a study is for."""


class MondrianSampler(RemembersStudies[ToldStudy], ReadableSampler):
    """Sampler for Optuna studies, with probabilistic models of objectives and constraints.

    Up to 200 trials the default model is one Gaussian process. A Mondrian forest replaces it while
    it predicts the values badly. Beyond 200 trials the model is a Mondrian forest with a Gaussian
    process in each leaf. One model covers all parameters of the trials, conditional ones included:
    the sampler learns from the trials which choices activate which parameters. The time of a
    suggestion grows with the logarithm of the number of trials.

    Parameters
    ----------
    seed : int or None, default=None
        Seed. With one thread, the same seed gives the same trials. None takes entropy from the
        system.
    n_startup_trials : int or None, default=None
        Number of first trials without the model. None is 4 or 10, see ``MondrianOptimizer``.
    surrogate : {"gaussian_process", "forest", "amf", "kernel"}, default="gaussian_process"
        The model, see :class:`mondrian_bo.MondrianOptimizer`.
    acquisition : str, Acquisition or Portfolio, default="auto"
        The score that suggestions maximise: "auto", "ucb", "ei", "log_ei", "pi", "thompson", an
        instance from :mod:`mondrian_bo.acquisitions` or a
        :class:`mondrian_bo.optimizer.Portfolio`. "auto" draws one of several acquisitions for each
        trial. With one objective and no constraints, Thompson sampling takes their place in half of
        the draws while trials are running. With the surrogates "gaussian_process" and "forest",
        "auto" also has quadratics and restarts and, with "gaussian_process" alone, suggestions of
        other kinds, see the notes of ``MondrianOptimizer``. Every other value leaves all of these
        out, but a `Portfolio` may ask for them.
    n_estimators : int or None, default=None
        Number of trees or partitions; None is the surrogate's default.
    n_candidates : int, default=600
        Number of candidates to score for each suggestion. With many trials, objectives or
        parameters there are fewer, see ``MondrianOptimizer``.
    is_valid : callable or None, default=None
        Which points may be suggested, where that is known without a trial: a function of the
        parameters by name (a dict) that returns True or False. It may raise ``KeyError`` where a
        parameter is missing: one of another branch, or one that is not known yet. See the notes.
    constraints_func : callable or None, default=None
        Maps a finished trial to the values of its constraints, at most 0 if they hold. Deprecated
        in Optuna 5: use ``trial.set_constraint``.
    warm_start : sequence of optuna.Study or None, default=None
        Earlier studies of the same or similar spaces, with one objective and the direction of this
        study. Their complete trials start the model, and count as far as they predict this study's
        trials. Parameters are matched by name; docs/how-to/earlier-studies.md has the rules.
    fidelity : str or mapping of str to float, default=None
        Name of a parameter that says how exact and how expensive a trial is, such as a number of
        epochs: one of ``suggest_int`` or ``suggest_float``. Its target is the upper end of its
        range, or the one in the mapping, as in ``{"n_epochs": 100}``. The sampler searches for the
        best parameters at the target, and runs other trials at cheaper fidelities. Only trials at
        the target count, and ``study.best_trial`` does not know that: use
        :func:`mondrian_bo.best_at_target`. docs/how-to/fidelities.md has the rules.
    cost : str or None, default=None
        With a fidelity: name of the user attribute (``trial.set_user_attr``) that holds what a
        trial cost, in any unit. Without it, the cost is taken to be proportional to the fidelity.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described, or if an earlier study has several objectives or no
        complete trial with a parameter.

    Notes
    -----
    A pruned trial is learnt with the value that its reports predict, compared with those of
    complete trials, and with the prediction's standard error as known noise: a trial pruned early
    counts less. Where fewer than three complete trials went on beyond its last report, that report
    is learnt, but no better than the median of the complete trials; without a report, the median. A
    failed trial is not learnt, and its exact point is not suggested again. If the two nearest
    points failed as well, it is learnt with the median, or with the worst value if more than two
    thirds of the points failed; not so while failures look like accidents, because trials next to
    failed ones fail no more often than others. Attempts at one point count once, and not at all
    after one that is complete. Running trials, also those of other threads and workers, are imputed
    with values drawn from the model, anew for each suggestion. If a parameter's range has
    changed, suggestions follow the latest range and the model keeps the trials outside of it; a
    range that keeps changing is covered as a whole. A parameter with a single possible value in
    each trial is not in the model; if these values differ, a warning says so.

    Constraints are read from the trials (``trial.set_constraint``). Each has a model of its own,
    and the acquisition is weighted by the probability that a candidate is feasible. With two to
    four objectives, suggestions maximise the expected hypervolume improvement, with "ei", "log_ei"
    and "pi" as with "auto". "ucb", "thompson" and a user's own acquisition give a value of each
    objective, and suggestions maximise the hypervolume that these values add. With several
    objectives a pruned trial counts as a failed one. More than four raise a ``ValueError``.

    Values that ``study.enqueue_trial`` or a ``PartialFixedSampler`` sets are kept. The other
    parameters are searched beside them, with a model of all trials.

    `is_valid` filters candidates, and has the values of all parameters that are known: those of
    past trials, with those that ``study.enqueue_trial`` or a ``PartialFixedSampler`` sets.
    Parameters that are new, all of the first trial among them, are drawn one after the other, each
    until `is_valid` returns True or raises ``KeyError``. So it should return False as soon as
    nothing valid is left. If thousands of points or draws are refused, a ``ValueError`` says so; a
    valid first trial (``study.enqueue_trial``) helps where the valid region is small. A trial whose
    fixed values are not valid runs nevertheless. To pickle the sampler, define functions at the top
    level of a module.

    Examples
    --------
    >>> import optuna
    >>> from mondrian_bo import MondrianSampler
    >>> study = optuna.create_study(sampler=MondrianSampler(seed=0))
    >>> study.optimize(lambda trial: trial.suggest_float("x", -1, 2) ** 2, n_trials=30)
    >>> study.best_value < 0.01
    True
    """

    def __init__(
        self,
        seed: int | None = None,
        *,
        n_startup_trials: int | None = None,
        surrogate: SurrogateName = "gaussian_process",
        acquisition: AcquisitionChoice = "auto",
        n_estimators: int | None = None,
        n_candidates: int = 600,
        is_valid: Callable[[dict[str, Any]], bool] | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        warm_start: Sequence[optuna.Study] | None = None,
        fidelity: FidelityChoice | None = None,
        cost: str | None = None,
    ) -> None:
        check_settings(surrogate, acquisition, n_startup_trials, n_estimators, n_candidates)
        check_callable("is_valid", is_valid)
        check_callable("constraints_func", constraints_func)
        if constraints_func is not None:
            text = _deprecated._DEPRECATION_WARNING_TEMPLATE.format(
                name="`constraints_func`", d_ver="5.0.0", r_ver="7.0.0"
            )
            optuna_warn(f"{text} Use `optuna.trial.Trial.set_constraint` instead.", FutureWarning)
        self._earlier: EarlierStudies | None = None
        if warm_start is not None:
            # Loaded here: few samplers have earlier studies.
            from mondrian_bo.integrations.optuna.suggestions.earlier_studies import EarlierStudies

            earlier = EarlierStudies(warm_start)
            self._earlier = earlier if len(earlier) else None
        self._fidelity: StudyFidelity | None = None
        if fidelity is not None or cost is not None:
            # Loaded here: few samplers have a fidelity.
            from mondrian_bo.integrations.optuna.suggestions.study_fidelity import StudyFidelity

            self._fidelity = StudyFidelity(fidelity, cost, self._earlier is not None)
        self._is_valid = is_valid
        self._constraints_func = constraints_func
        self._entropy = _check_seed(seed)
        self._is_random = seed is None
        self._settings: dict[str, Any] = {
            "surrogate": surrogate,
            "acquisition": acquisition,
            "n_startup_trials": n_startup_trials,
            "n_estimators": n_estimators,
            "n_candidates": n_candidates,
        }
        RemembersStudies.__init__(self)

    @property
    def fidelity(self) -> FidelityChoice | None:
        """The argument `fidelity`; None if there is none."""
        return None if self._fidelity is None else self._fidelity.choice

    def reseed_rng(self) -> None:
        """Do nothing: draws depend on the seed and the trial's number, which no workers share."""

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return all parameters that finished trials have had, with their latest distributions."""
        with self._lock:
            memory = self._memory_of(study)
            memory.latest_read = trial.number, memory.reader.read(study)
            return dict(memory.reader.distributions)

    def sample_relative(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],
    ) -> dict[str, Any]:
        """Suggest values for those parameters of a search space that will be active."""
        if not search_space:
            return {}
        is_valid, constants = self._is_valid, None
        # `trial.params` is not empty if the trial was added to the study with values, as a trial
        # that runs again after its worker died. These values count as fixed.
        fixed = {**fixed_values(study, trial), **trial.params}
        with self._lock:
            memory = self._memory_of(study)
            others = memory.running_beside(study, trial)
            n_published = 0
            while True:
                full_space = search_space
                if fixed:
                    full_space = with_fixed(search_space, fixed, memory.reader.distributions)
                if is_valid is not None:
                    constants = constants_beside(is_valid, study, trial, memory.reader, full_space)
                optimizer = memory.optimizer_for(
                    study, full_space, self._settings, is_valid, constants
                )
                if optimizer is None:
                    return {}
                within = None
                if fixed:
                    kept = fixed if is_valid is None else valid_fixed(is_valid, fixed, constants)
                    within = fixed_part(kept, full_space, optimizer.space)
                pending = np.empty((0, optimizer.space.n_dimensions))
                if others:
                    pending = memory.rows_of(others, optimizer)
                suggested = optimizer.suggest(pending, trial.number, within)
                # The optimizer knows choices by their indices. The storage rounds large integers.
                internal = {k: float(v) for k, v in suggested.items()}
                params = {
                    name: search_space[name].to_external_repr(value)
                    for name, value in internal.items()
                    if name in search_space
                }
                n_published = publish(study, trial, internal, n_published)
                # Of two workers with the same proposal the one that publishes later sees the
                # other's, and proposes again.
                others = memory.running_beside(study, trial)
                finished = memory.reader.finished[memory.n_told :]
                if not others and not finished:
                    return params
                row = encode_leniently(optimizer.space, [internal])
                # A row that was suggested although it is taken: no other point is left.
                if _has(pending, row) or not _is_taken(row, memory, optimizer, others, finished):
                    return params

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return a parameter that no finished trial has had, or whose range is new.

        A number that was proposed for the trial, outside of the range that it asks for, becomes the
        nearest one of the range, as ranges may depend on other parameters: in a finite range half
        of the time, and not if that would repeat a trial that has finished or runs, unless no
        other number is left. Other values are drawn uniformly. The study's first trial has the
        middle of each numeric range.
        """
        # Loaded here: few trials draw parameters one by one.
        with without_collections("mondrian_bo.integrations.optuna.suggestions.first_values"):
            from mondrian_bo.integrations.optuna.suggestions.first_values import FirstValues

        with self._lock:
            # Studies that are not supported raise here.
            memory = self._memory_of(study)
            words = [*memory.entropy, trial.number, zlib.crc32(param_name.encode())]
            seed = int(np.random.SeedSequence(words).generate_state(1)[0])
            values = FirstValues(study, trial, param_name, param_distribution, seed)
            proposal, nearest = proposed_values(trial).get(param_name), None
            if proposal is not None:
                number = rounded_number(param_distribution, proposal)
                if number is not None:
                    return number
                nearest = values.nearest(proposal)
            value = values.first() if nearest is None else nearest
            if self._earlier is not None:
                value = self._earlier.first_value(
                    trial.number, param_name, param_distribution, value
                )
            if self._fidelity is not None:
                value = self._fidelity.first_value(
                    trial.number, param_name, param_distribution, value
                )
            is_valid = self._is_valid
            fixed = fixed_values(study, trial) if is_valid is not None else {}
            known = memory.values_of(trial, fixed) if is_valid is not None else {}
            if (fixed or trial.params) and not may_be_valid(is_valid, known):
                # What the trial had before anything was suggested for it is not valid itself.
                is_valid = None

            def accepts(value: Any) -> bool:
                return may_be_valid(is_valid, {**known, param_name: value})

            value = values.valid(value, accepts, known)
            if proposal is not None:
                value = values.new(value, proposal, accepts, memory.taken_beside(study, trial))
                nearest = nearest_number(param_distribution, proposal)
                if nearest is not None and value == nearest:
                    note_replaced(study, trial, param_name, proposal)
            elif self._fidelity is None or self._fidelity.name != param_name:
                value = values.free(value, accepts, memory.reader.distributions)
            return value

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Store the values that `constraints_func` gives for a complete or pruned trial."""
        if self._constraints_func is not None:
            _process_constraints_after_trial(self._constraints_func, study, trial, state)

    def read_model(self, study: optuna.Study) -> StudyModel:
        """Return a model of a study, which has learnt all finished trials.

        It is apart from the one that suggestions come from: reading it does not change them. It
        knows neither `warm_start` nor `fidelity`, and treats a fidelity as any other parameter.

        Parameters
        ----------
        study : optuna.Study
            The study.

        Returns
        -------
        StudyModel
            The model.

        Raises
        ------
        ValueError
            If the study has no finished trial with a finite value and a parameter that varies.
        """
        with self._lock:
            memory = self._memory_of(study, "reading")
            memory.reader.read(study)
            distributions, is_valid = memory.reader.distributions, self._is_valid
            constants = None
            if is_valid is not None:
                constants = constants_beside(is_valid, study, None, memory.reader, distributions)
            model = memory.optimizer_for(study, distributions, self._settings, is_valid, constants)
            if model is None or not model.has_finite_values:
                raise ValueError(
                    "No finished trial has a finite value and a parameter that varies. A parameter "
                    "whose range is wider than the largest float is not in the model."
                )
            return StudyModel(memory.reader, model)

    def _memory_of(self, study: optuna.Study, purpose: _Purpose = "suggesting") -> ToldStudy:
        """Return what the sampler knows of a study, with a model for suggesting or for reading."""
        return self._recall(study, partial(self._new_memory, study, purpose), purpose)

    def _new_memory(self, study: optuna.Study, purpose: _Purpose) -> ToldStudy:
        """Return the memory of a study that nothing is known of; raise if it is not supported."""
        if len(study.directions) > MOST_OBJECTIVES:
            raise ValueError(
                f"MondrianSampler supports up to {MOST_OBJECTIVES} objectives, and the study "
                f"has {len(study.directions)}. More can be made constraints, or be combined."
            )
        if self._earlier is not None:
            self._earlier.check(study)
        if self._fidelity is not None:
            self._fidelity.check(study)
        # A model that is only read has neither.
        extras = (self._earlier, self._fidelity) if purpose == "suggesting" else ()
        entropy = self._entropy
        if self._is_random:
            # Studies of one sampler without a seed differ.
            entropy = [*entropy, zlib.crc32(study.study_name.encode())]
        name = None if self._fidelity is None else self._fidelity.name
        return ToldStudy(entropy, name, *extras)


def _is_taken(
    row: FloatArray,
    memory: ToldStudy,
    optimizer: RowOptimizer,
    others: Sequence[FrozenTrial],
    finished: Sequence[FinishedTrial],
) -> bool:
    """Return whether a row, shape (1, d), is that of a running or of a newly finished trial."""
    if _has(memory.rows_of(others, optimizer), row):
        return True
    values = [{**one.unasked, **one.values} for one in finished]
    return _has(encode_leniently(optimizer.space, values), row)


def _has(rows: FloatArray, row: FloatArray) -> bool:
    """Return whether a row, shape (1, d), is among others, shape (m, d)."""
    return bool(((rows == row) | (np.isnan(rows) & np.isnan(row))).all(axis=1).any())


def _check_seed(seed: int | None) -> list[int]:
    """Return a seed as words of entropy; None takes four words from the system."""
    if seed is None:
        return [int(word) for word in np.random.SeedSequence().generate_state(4)]
    if not is_integer(seed) or seed < 0:
        raise ValueError(f"`seed` must be a non-negative integer or None, got {seed!r}.")
    return [int(seed)]

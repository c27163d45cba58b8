"""The settings of a search: its surrogate and its portfolio of acquisitions."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict

import numpy as np

from mondrian_bo.acquisitions import (
    Acquisition,
    AcquisitionName,
    LogExpectedImprovement,
    ThompsonSampling,
    UpperConfidenceBound,
    get_acquisition,
)
from mondrian_bo.shared.argument_checks import check_count, check_flag, check_number
from mondrian_bo.surrogates.base import Columns
from mondrian_bo.surrogates.registry import SURROGATES, SurrogateName, get_surrogate


def _check_surrogate(surrogate: SurrogateName) -> None:
    if not isinstance(surrogate, str) or surrogate not in SURROGATES:
        raise ValueError(f"`surrogate` must be one of {list(SURROGATES)}, got {surrogate!r}.")


@dataclass(frozen=True)
class Arm:
    """A setting of a surrogate, and how suggestions are made with it.

    ``docs/design.md`` describes quadratics, steps of an evolution strategy and steps on a plateau.
    These need one objective, no constraints and no fidelity, and exploration needs no fidelity.

    Parameters
    ----------
    acquisitions : sequence of Acquisition
        One of them is drawn for each trial.
    power : bool, default=True
        Whether a power transform makes the values nearly Gaussian.
    options : mapping, default={}
        Keyword arguments of the surrogate that replace its defaults, such as ``block_size``.
    constrained : sequence of Acquisition or None, default=None
        Acquisitions under constraints; None is `acquisitions`.
    many_constrained : sequence of Acquisition or None, default=None
        Acquisitions under more than three constraints; None is `constrained`.
    while_running : sequence of Acquisition, default=()
        Acquisitions for half of the suggestions that are made while trials are running, unless
        there are constraints.
    quadratic : float, default=0.0
        Share of suggestions that maximise a draw from a quadratic model of the trials nearest to
        the incumbent, where that predicts well.
    quadratic_after : int, default=0
        Number of early trials, or 20 for each parameter if that is less. In early trials a
        quadratic must predict left-out trials nearly perfectly, there must be two trials for each
        parameter, and all parameters must be active in the best trials.
    evolution : float, default=0.0
        Share of suggestions that are steps of an evolution strategy: offspring of the best of the
        latest trials, chosen by the quadratic. All parameters must be numbers, and active in the
        latest trials, and there is no `is_valid`. In a space of d parameters, these steps begin
        after 16 d trials and after 8 * 2^d trials, or 300 if that is less.
    plateau : float, default=0.0
        Share of suggestions that are points among the good trials, far from each of them, while
        several trials have the best value.
    exploration : float, default=0.0
        Share of suggestions that are quasi-random points while models say too little. With one
        objective and no constraints: while the values of the trials count as noise, which is while
        the correlation of the values with their leave-one-out predictions is below 0.3, from 16 to
        200 trials. With constraints or several objectives: while some outcomes are constant and
        others are not. If it is not 0, all suggestions are quasi-random points while all outcomes
        are constant.
    candidates : float, default=1.0
        Share of the candidates (`n_candidates`) that are scored, in (0, 1], without constraints.
        The best of fewer candidates explores less.
    surrogate : str or None, default=None
        Name of the surrogate, which then has its default number of trees; None is that of the
        search.

    Raises
    ------
    TypeError, ValueError
        If there are no acquisitions, or one is not callable, `power` is not True or False, or
        `options` is no mapping. If a share of quadratics, evolution or plateau steps or of
        exploration is not in [0, 1], the first two add up to more than 1, that of candidates is not
        in (0, 1], `quadratic_after` is no integer >= 0, or `surrogate` is unknown.
    """

    acquisitions: Sequence[Acquisition]
    power: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    constrained: Sequence[Acquisition] | None = None
    many_constrained: Sequence[Acquisition] | None = None
    while_running: Sequence[Acquisition] = ()
    quadratic: float = 0.0
    quadratic_after: int = 0
    evolution: float = 0.0
    plateau: float = 0.0
    exploration: float = 0.0
    candidates: float = 1.0
    surrogate: SurrogateName | None = None

    def __post_init__(self) -> None:
        for name in ("acquisitions", "constrained", "many_constrained", "while_running"):
            group = getattr(self, name)
            if group is None and name in ("constrained", "many_constrained"):
                continue
            if isinstance(group, str) or not isinstance(group, Sequence):
                raise TypeError(f"`{name}` of an arm must be a sequence, got {group!r}.")
            for acquisition in group:
                if not callable(acquisition) or isinstance(acquisition, type):
                    raise TypeError(
                        f"`{name}` of an arm must hold acquisitions, got {acquisition!r}."
                    )
        if len(self.acquisitions) == 0:
            raise ValueError("`acquisitions` of an arm must hold at least one, got none.")
        check_flag("power", self.power)
        if not isinstance(self.options, Mapping):
            raise TypeError(f"`options` of an arm must be a mapping, got {self.options!r}.")
        for name in ("quadratic", "evolution", "plateau", "exploration", "candidates"):
            check_number(name, getattr(self, name))
        for name in ("quadratic", "evolution", "plateau", "exploration"):
            share = getattr(self, name)
            if not 0.0 <= share <= 1.0:
                raise ValueError(f"`{name}` of an arm must be in [0, 1], got {share!r}.")
        if self.quadratic + self.evolution > 1.0:
            raise ValueError(
                "`quadratic` and `evolution` of an arm must add up to at most 1, got "
                f"{self.quadratic!r} and {self.evolution!r}."
            )
        check_count("quadratic_after", self.quadratic_after, 0)
        if not 0.0 < self.candidates <= 1.0:
            raise ValueError(f"`candidates` of an arm must be in (0, 1], got {self.candidates!r}.")
        if self.surrogate is not None:
            _check_surrogate(self.surrogate)


@dataclass(frozen=True)
class Portfolio:
    """Arms, of which one is drawn for each trial.

    Parameters
    ----------
    arms : tuple of Arm
        The arms.
    restarts : bool, default=False
        Whether the search restarts when it suggests points near its incumbent only, without a gain.
    rugged : Arm or None, default=None
        Arm that takes the place of a drawn one whose model predicts the values badly, from 38 to
        200 trials: while the correlation of the values with their leave-one-out predictions is
        below 0.5, with one objective, and without constraints, a fidelity and earlier studies.

    Raises
    ------
    TypeError, ValueError
        If `arms` holds no arm, or something else, or `rugged` is no arm.
    """

    arms: tuple[Arm, ...]
    restarts: bool = False
    rugged: Arm | None = None

    def __post_init__(self) -> None:
        check_flag("restarts", self.restarts)
        if not isinstance(self.arms, Sequence):
            raise TypeError(f"`arms` of a portfolio must be a sequence, got {self.arms!r}.")
        if len(self.arms) == 0:
            raise ValueError("`arms` of a portfolio must hold at least one, got none.")
        for arm in self.arms:
            if not isinstance(arm, Arm):
                raise TypeError(f"`arms` of a portfolio must hold arms, got {arm!r}.")
        if self.rugged is not None and not isinstance(self.rugged, Arm):
            raise TypeError(f"`rugged` of a portfolio must be an arm or None, got {self.rugged!r}.")


AcquisitionChoice: TypeAlias = Literal["auto"] | AcquisitionName | Acquisition | Portfolio
"""Values of the parameter `acquisition`."""

_UNCONSTRAINED = (UpperConfidenceBound(), LogExpectedImprovement(0.01), LogExpectedImprovement(0.1))
"""Acquisitions of the default portfolio without constraints. A single one tends to stay in a single
basin."""

_CONSTRAINED = (UpperConfidenceBound(), LogExpectedImprovement())
"""Acquisitions of the default portfolio under constraints. Next to a constraint that limits the
optimum, a margin can only be gained by violating it."""

_MANY_CONSTRAINED = (LogExpectedImprovement(optimism=1.0), LogExpectedImprovement())
"""Acquisitions of the default portfolio under many constraints. Each log-probability is a barrier
that keeps a confidence bound away from a constraint. The sum of many barriers keeps it away from an
optimum where many constraints meet. The logarithm of the bound's lead over the incumbent outweighs
the barriers."""

_RUNNING = (ThompsonSampling(),)
"""Acquisitions of the default portfolio while trials are running. Each suggestion maximises another
drawn function, so the points of a batch differ."""

_ARM = Arm(
    _UNCONSTRAINED,
    constrained=_CONSTRAINED,
    many_constrained=_MANY_CONSTRAINED,
    while_running=_RUNNING,
    quadratic=0.5,
    quadratic_after=200,
    evolution=0.25,
    plateau=0.5,
    exploration=0.5,
)
"""The arm of the default portfolio with one objective. After many trials a process, which has one
scale for all values, ends farther from an optimum than a quadratic, and an evolution strategy still
improves where a function is no quadratic."""

_WITHOUT_STEPS = replace(
    _ARM, quadratic=0.0, quadratic_after=0, evolution=0.0, plateau=0.0, exploration=0.0
)
"""The arm of the default portfolio without steps: an acquisition chooses each suggestion."""

_DEFAULT = Portfolio((_WITHOUT_STEPS,))
"""The portfolio of surrogates without an entry in `_PORTFOLIOS`."""

_FOREST = replace(_WITHOUT_STEPS, quadratic=0.5, candidates=0.25)
"""The arm of a Mondrian forest."""

_PORTFOLIOS = {
    "gaussian_process": Portfolio(
        (_ARM,), restarts=True, rugged=replace(_FOREST, surrogate="forest")
    ),
    "forest": Portfolio((_FOREST,), restarts=True),
}
"""Portfolios by surrogate, for `acquisition="auto"` with one objective."""

_FRONT = (LogExpectedImprovement(),)
"""Acquisition with several objectives: the expected hypervolume improvement."""

_FRONT_ARM = Arm(_FRONT, power=False, exploration=0.5)
"""The arm with several objectives, without a power transform."""

_TWO_OBJECTIVES = Portfolio((replace(_FRONT_ARM, power=True), _FRONT_ARM))
"""The default portfolio with two objectives. A power transform helps the models, but hypervolumes
on its scale overrate one end of the front."""

_MORE_OBJECTIVES = Portfolio((_FRONT_ARM,))
"""The default portfolio with three or four objectives: ends are a larger part of the front."""

_OPTIONS_OF_FRONTS = {"gaussian_process": {"restart_growth": 1.5, "input_warping": False}}
"""Options by surrogate with several objectives, our choice. A model that takes the ripple of an
objective for noise hides pieces of the front, and such a search has no restarts. Input warping
gains nothing over 18 problems, and loses on DTLZ2 with four objectives."""


_FEW_FIRST = 4
"""Default number of first trials without the model, our choice: a Gaussian process gains from the
fifth trial on."""

_FIRST = 10
"""The same where parameters are conditional, our choice: a model does not know the branches that no
trial has been in. Other surrogates and fidelities have been measured with this number only."""


class SearchSettings(NamedTuple):
    """The settings that :class:`MondrianOptimizer` and its adapters share, checked.

    Attributes
    ----------
    surrogate : str
        Name of the surrogate.
    portfolio : Portfolio
        Acquisitions, one of which is drawn for each trial.
    n_startup_trials : int
        Number of first trials without the model, >= 0.
    n_estimators : int or None
        Number of trees, >= 1; None is the surrogate's default.
    n_candidates : int
        Number of candidates to score for each suggestion, >= 1.
    """

    surrogate: SurrogateName
    portfolio: Portfolio
    n_startup_trials: int
    n_estimators: int | None
    n_candidates: int


class SearchOptions(TypedDict, total=False):
    """The settings as users give them; :func:`check_settings` has the defaults."""

    surrogate: SurrogateName
    acquisition: AcquisitionChoice
    n_startup_trials: int | None
    n_estimators: int | None
    n_candidates: int


def check_settings(
    surrogate: SurrogateName = "gaussian_process",
    acquisition: AcquisitionChoice = "auto",
    n_startup_trials: int | None = None,
    n_estimators: int | None = None,
    n_candidates: int = 600,
    n_objectives: int = 1,
    is_plain: bool = False,
) -> SearchSettings:
    """Check the settings that :class:`MondrianOptimizer` and its adapters share.

    The other parameters are the number of objectives, and whether all parameters are always active
    and there is no fidelity. Both decide what defaults are.

    Raises
    ------
    TypeError, ValueError
        If one of them is not as :class:`MondrianOptimizer` describes.
    """
    _check_surrogate(surrogate)
    if n_startup_trials is None:
        few = is_plain and surrogate == "gaussian_process"
        n_startup_trials = _FEW_FIRST if few else _FIRST
    check_count("n_startup_trials", n_startup_trials, 0)
    if n_estimators is not None:
        check_count("n_estimators", n_estimators, 1)
        n_estimators = int(n_estimators)
    check_count("n_candidates", n_candidates, 1)
    return SearchSettings(
        surrogate,
        get_portfolio(surrogate, acquisition, n_objectives),
        int(n_startup_trials),
        n_estimators,
        int(n_candidates),
    )


def get_portfolio(
    surrogate: SurrogateName, acquisition: AcquisitionChoice, n_objectives: int = 1
) -> Portfolio:
    """Return the portfolio of a search with this surrogate.

    Parameters
    ----------
    surrogate : str
        Name of the surrogate.
    acquisition : str, Acquisition or Portfolio
        "auto" is the surrogate's own portfolio. Another acquisition replaces those of its arms,
        without restarts. A portfolio is returned unchanged.
    n_objectives : int, default=1
        Number of objectives.

    Raises
    ------
    TypeError, ValueError
        If the acquisition is unknown, or an arm has an option that the surrogate does not accept.
    """
    if isinstance(acquisition, Portfolio):
        rugged = () if acquisition.rugged is None else (acquisition.rugged,)
        for arm in (*acquisition.arms, *rugged):
            _check_options(arm.surrogate or surrogate, arm.options)
        return acquisition
    if n_objectives == 1:
        portfolio = _PORTFOLIOS.get(surrogate, _DEFAULT)
    else:
        portfolio = _TWO_OBJECTIVES if n_objectives == 2 else _MORE_OBJECTIVES
        options = _OPTIONS_OF_FRONTS.get(surrogate, {})
        portfolio = Portfolio(tuple(replace(arm, options=options) for arm in portfolio.arms))
    if acquisition == "auto":
        return portfolio
    alone = (get_acquisition(acquisition),)
    return Portfolio(tuple(Arm(alone, arm.power, arm.options) for arm in portfolio.arms))


def _check_options(surrogate: SurrogateName, options: Mapping[str, Any]) -> None:
    if not options:
        return
    parameters = inspect.signature(get_surrogate(surrogate)).parameters.values()
    accepted = [one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]
    for name in options:
        if name not in accepted:
            raise ValueError(
                f"Option {name!r} of an arm is unknown to surrogate {surrogate!r}, "
                f"which accepts {accepted}."
            )
    if "n_estimators" in options:
        check_count("n_estimators", options["n_estimators"], 1)
    # The surrogate checks the values itself.
    get_surrogate(surrogate)(
        Columns(np.zeros(1, dtype=np.int64), False), np.random.SeedSequence(0), **options
    )

"""The samplers a benchmark compares, by name."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeAlias

import optuna
from optuna.samplers import BaseSampler

from mondrian_bo.benchmarks.harness.ax_run import AxRun, Strategy
from mondrian_bo.benchmarks.harness.methods import mondrian
from mondrian_bo.benchmarks.harness.peer_run import PEERS, Peer, PeerRun
from mondrian_bo.benchmarks.harness.schedule import Schedule

__all__ = ["SAMPLERS", "BenchmarkSampler", "get_sampler", "installed_samplers", "split_names"]

RunFactory: TypeAlias = Callable[..., AxRun | PeerRun]
"""Starts a run of Ax or a peer on a space, with a number of trials. That of Ax also takes the
numbers of objectives and of constraints, as :class:`AxRun` does."""


@dataclass(frozen=True)
class BenchmarkSampler:
    """A sampler that benchmarks can run.

    Attributes
    ----------
    factory : callable
        Takes a seed and settings as keyword arguments, and returns the sampler, or what starts a
        run of Ax or a peer on a space. Without settings the sampler has its own defaults.
    requires : str or None
        The module that it needs, if that is optional.
    remedy : str
        How to install that module.
    peer : Peer or None
        The library, if it runs in an environment of its own.
    schedule : Schedule
        When its trials are asked for and told.
    """

    factory: Callable[..., BaseSampler | RunFactory]
    requires: str | None = None
    remedy: str = ""
    peer: Peer | None = None
    schedule: Schedule = field(default_factory=Schedule)

    @property
    def is_installed(self) -> bool:
        """Whether the required module can be found, or its interpreter has a name."""
        if self.peer is not None:
            return self.peer.is_installed
        return self.requires is None or find_spec(self.requires) is not None


def _ax(strategy: Strategy) -> BenchmarkSampler:
    """Return Ax as a sampler, with one of the strategies of `AxRun`."""

    def factory(**settings: Any) -> RunFactory:
        return lambda space, n_trials, **outcomes: AxRun(space, strategy, **settings, **outcomes)

    return BenchmarkSampler(factory, "ax", "pip install -c constraints.txt 'mondrian-bo[ax]'")


def _peer(peer: Peer) -> BenchmarkSampler:
    """Return a library that runs in an environment of its own as a sampler."""

    def factory(seed: int, batch: int = 1, **settings: str) -> RunFactory:
        for key, value in settings.items():
            if value not in (known := peer.settings.get(key, ())):
                known = known or tuple(peer.settings)
                raise ValueError(f"{peer.title} has no {key}={value}; known: {', '.join(known)}")
        return lambda space, n_trials: PeerRun(peer, space, seed, n_trials, batch, **settings)

    return BenchmarkSampler(factory, peer.title, peer.remedy, peer)


SAMPLERS: dict[str, BenchmarkSampler] = {
    "mondrian": BenchmarkSampler(mondrian),
    "random": BenchmarkSampler(optuna.samplers.RandomSampler),
    "tpe": BenchmarkSampler(optuna.samplers.TPESampler),
    "nsga2": BenchmarkSampler(optuna.samplers.NSGAIISampler),
    "gp": BenchmarkSampler(optuna.samplers.GPSampler, "torch", "pip install torch"),
    "cmaes": BenchmarkSampler(
        partial(optuna.samplers.CmaEsSampler, warn_independent_sampling=False),
        "cmaes",
        "pip install 'mondrian-bo[bench]'",
    ),
    "ax": _ax("default"),
    "ax_mondrian": _ax("predictive"),
    "ax_mondrian_node": _ax("candidate"),
    **{name: _peer(peer) for name, peer in PEERS.items()},
}
"""The compared samplers, by the names that are saved with runs."""


def get_sampler(name: str) -> BenchmarkSampler:
    """Return a sampler by its name.

    Parameters
    ----------
    name : str
        A key of `SAMPLERS`, alone or with settings: ``mondrian:surrogate=amf,n_estimators=20``. The
        settings ``batch`` and ``workers`` are those of the `Schedule`, with any sampler.

    Returns
    -------
    BenchmarkSampler
        The sampler, installed or not.

    Raises
    ------
    ValueError
        If there is no sampler of that name, a setting has no value, or the schedule is impossible.
    """
    base, _, settings = name.partition(":")
    if base not in SAMPLERS:
        raise ValueError(f"unknown sampler {base!r}; known: {', '.join(SAMPLERS)}")
    sampler = SAMPLERS[base]
    if not settings:
        return sampler
    parsed = _parse_settings(name, settings)
    if "seed" in parsed:
        raise ValueError(f"the seeds of runs are those of `--seeds`, got a seed in {name!r}")
    schedule = Schedule(parsed.pop("batch", 1), parsed.pop("workers", 1))
    if sampler.peer is not None:
        parsed["batch"] = schedule.batch  # a peer suggests a whole batch at once
    return replace(sampler, factory=partial(sampler.factory, **parsed), schedule=schedule)


def _parse_settings(name: str, settings: str) -> dict[str, Any]:
    parsed = {}
    for setting in settings.split(","):
        key, equals, value = setting.partition("=")
        if not (key.isidentifier() and equals and value):
            raise ValueError(f"settings of a sampler are `key=value`, got {setting!r} in {name!r}")
        try:
            parsed[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parsed[key] = value  # a word needs no quotes
    return parsed


def split_names(text: str) -> list[str]:
    """Split a list of samplers at the commas that do not separate settings.

    Parameters
    ----------
    text : str
        For instance ``"tpe,mondrian:surrogate=amf,n_estimators=20,random"``.

    Returns
    -------
    list of str
        ``["tpe", "mondrian:surrogate=amf,n_estimators=20", "random"]``. A sampler that is given
        twice counts once, and an end without a name not at all.
    """
    names: list[str] = []
    for piece in (piece.strip() for piece in text.split(",")):
        if "=" in piece and ":" not in piece and names:
            names[-1] += f",{piece}"
        elif piece:
            names.append(piece)
    return list(dict.fromkeys(names))


def installed_samplers(names: Iterable[str], notify: Callable[[str], None]) -> list[str]:
    """Return those of some samplers that are installed.

    Parameters
    ----------
    names : iterable of str
        As `get_sampler` takes them.
    notify : callable
        Called with one sentence for each sampler that is not installed.

    Returns
    -------
    list of str
        Names of the installed ones, in the given order.

    Raises
    ------
    ValueError
        If a name is unknown, a sampler refuses its settings, or none of the samplers is installed.
    """
    wanted, installed = list(names), []
    if not wanted:
        raise ValueError("no sampler is named")
    for name in wanted:
        sampler = get_sampler(name)
        if sampler.is_installed:
            _check_settings(name, sampler)
            installed.append(name)
        else:
            notify(f"skipping {name}: needs {sampler.requires} ({sampler.remedy})")
    if not installed:
        raise ValueError("none of the samplers asked for is installed")
    return installed


def _check_settings(name: str, sampler: BenchmarkSampler) -> None:
    """Create a sampler with its settings, so that wrong settings are reported before the runs."""
    if ":" not in name:
        return
    try:
        sampler.factory(seed=0)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name!r}: {error}") from error

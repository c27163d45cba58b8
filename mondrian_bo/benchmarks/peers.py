"""The samplers a benchmark compares, by name."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal

from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, RandomSampler, TPESampler

from mondrian_bo.benchmarks.ax_harness import AxStrategy

__all__ = ["PEERS", "Peer", "get_peer", "installed_peers", "split_names"]


@dataclass(frozen=True)
class Peer:
    """A sampler in the comparison.

    Attributes
    ----------
    factory : callable
        Makes the sampler from a seed; with the defaults its users get, unless it is also given
        settings as keyword arguments.
    requires : str or None
        The module without which it does not work.
    remedy : str
        What to install for it.
    """

    factory: Callable[..., BaseSampler | AxStrategy]
    requires: str | None = None
    remedy: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether the module it requires can be found."""
        return self.requires is None or find_spec(self.requires) is not None


def _mondrian(seed: int, **settings: Any) -> BaseSampler:
    # Imported here: numba is of no concern to the worker processes of other peers.
    from mondrian_bo.integrations.optuna.sampler import MondrianSampler

    return MondrianSampler(seed=seed, **settings)


PEERS: dict[str, Peer] = {
    "mondrian": Peer(_mondrian),
    "random": Peer(lambda seed, **settings: RandomSampler(seed=seed, **settings)),
    "tpe": Peer(lambda seed, **settings: TPESampler(seed=seed, **settings)),
    "gp": Peer(
        lambda seed, **settings: GPSampler(seed=seed, **settings), "torch", "pip install torch"
    ),
    "cmaes": Peer(
        lambda seed, **settings: CmaEsSampler(
            seed=seed, warn_independent_sampling=False, **settings
        ),
        "cmaes",
        "pip install 'mondrian-bo[bench]'",
    ),
}


def _ax(strategy: Literal["default", "predictive", "candidate"]) -> Peer:
    def factory(seed: int, **settings: Any) -> AxStrategy:
        return AxStrategy(seed, strategy, settings)

    return Peer(factory, "ax", "pip install -c constraints.txt 'mondrian-bo[ax]'")


PEERS |= {
    "ax": _ax("default"),
    "ax_mondrian": _ax("predictive"),
    "ax_mondrian_node": _ax("candidate"),
}


def get_peer(name: str) -> Peer:
    """Return a peer by its name.

    Parameters
    ----------
    name : str
        A key of `PEERS`, alone or with settings: ``mondrian:surrogate=amf,n_estimators=20``.

    Returns
    -------
    Peer
        The peer, installed or not.

    Raises
    ------
    ValueError
        If there is no peer of that name, or a setting has no value.
    """
    base, _, settings = name.partition(":")
    if base not in PEERS:
        raise ValueError(f"unknown sampler {base!r}; known: {', '.join(PEERS)}")
    peer = PEERS[base]
    if not settings:
        return peer
    return replace(peer, factory=partial(peer.factory, **_parse_settings(name, settings)))


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
    """Split a list of samplers at its commas, except at those between the settings of one.

    Parameters
    ----------
    text : str
        For instance ``"tpe,mondrian:surrogate=amf,n_estimators=20,random"``.

    Returns
    -------
    list of str
        ``["tpe", "mondrian:surrogate=amf,n_estimators=20", "random"]``.
    """
    names: list[str] = []
    for piece in (piece.strip() for piece in text.split(",")):
        if "=" in piece and ":" not in piece and names:
            names[-1] += f",{piece}"
        else:
            names.append(piece)
    return names


def installed_peers(names: Iterable[str], notify: Callable[[str], None]) -> list[str]:
    """Keep the peers that can run here.

    Parameters
    ----------
    names : iterable of str
        As `get_peer` takes them.
    notify : callable
        Called with one sentence per peer that is left out.

    Returns
    -------
    list of str
        The installed ones, in the given order.

    Raises
    ------
    ValueError
        If a name is unknown, a peer refuses its settings, or none of the peers is installed.
    """
    installed = []
    for name in names:
        peer = get_peer(name)
        if peer.is_installed:
            _check_settings(name, peer)
            installed.append(name)
        else:
            notify(f"skipping {name}: needs {peer.requires} ({peer.remedy})")
    if not installed:
        raise ValueError("none of the samplers asked for is installed")
    return installed


def _check_settings(name: str, peer: Peer) -> None:
    """Make a sampler that has settings, so that wrong ones show before the runs."""
    if ":" not in name:
        return
    try:
        peer.factory(0)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name!r}: {error}") from error

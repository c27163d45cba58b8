"""The samplers a benchmark compares, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec

from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, RandomSampler, TPESampler

__all__ = ["PEERS", "Peer", "get_peer", "installed_peers"]


@dataclass(frozen=True)
class Peer:
    """A sampler in the comparison.

    Attributes
    ----------
    factory : callable
        Makes the sampler, with the defaults its users get, from a seed.
    requires : str or None
        The module without which it does not work.
    remedy : str
        What to install for it.
    """

    factory: Callable[[int], BaseSampler]
    requires: str | None = None
    remedy: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether the module it requires can be found."""
        return self.requires is None or find_spec(self.requires) is not None


def _mondrian(seed: int) -> BaseSampler:
    # Imported here: numba is of no concern to the worker processes of other peers.
    from mondrian_bo.integrations.optuna import MondrianSampler

    return MondrianSampler(seed=seed)


PEERS: dict[str, Peer] = {
    "mondrian": Peer(_mondrian),
    "random": Peer(lambda seed: RandomSampler(seed=seed)),
    "tpe": Peer(lambda seed: TPESampler(seed=seed)),
    "gp": Peer(lambda seed: GPSampler(seed=seed), "torch", "pip install torch"),
    "cmaes": Peer(
        lambda seed: CmaEsSampler(seed=seed, warn_independent_sampling=False),
        "cmaes",
        "pip install 'mondrian-bo[bench]'",
    ),
}


def get_peer(name: str) -> Peer:
    """Return a peer by its name.

    Parameters
    ----------
    name : str
        A key of `PEERS`.

    Returns
    -------
    Peer
        The peer, installed or not.

    Raises
    ------
    ValueError
        If there is no peer of that name.
    """
    if name not in PEERS:
        raise ValueError(f"unknown sampler {name!r}; known: {', '.join(PEERS)}")
    return PEERS[name]


def installed_peers(names: Iterable[str], notify: Callable[[str], None]) -> list[str]:
    """Keep the peers that can run here.

    Parameters
    ----------
    names : iterable of str
        Keys of `PEERS`.
    notify : callable
        Called with one sentence per peer that is left out.

    Returns
    -------
    list of str
        The installed ones, in the given order.

    Raises
    ------
    ValueError
        If a name is unknown, or none of the peers is installed.
    """
    installed = []
    for name in names:
        peer = get_peer(name)
        if peer.is_installed:
            installed.append(name)
        else:
            notify(f"skipping {name}: needs {peer.requires} ({peer.remedy})")
    if not installed:
        raise ValueError("none of the samplers asked for is installed")
    return installed

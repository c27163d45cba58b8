"""Ask-and-tell loops of HEBO and SMAC: they run in a process with its own Python environment.

A. I. Cowen-Rivers et al. HEBO: Pushing the Limits of Sample-Efficient Hyper-parameter Optimisation.
Journal of Artificial Intelligence Research 74:1269-1349, 2022. PyPI package ``hebo``.

M. Lindauer et al. SMAC3: A Versatile Bayesian Optimization Package for Hyperparameter Optimization.
Journal of Machine Learning Research 23(54):1-9, 2022. PyPI package ``smac``.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mondrian_bo.benchmarks.harness import peer_worker
from mondrian_bo.benchmarks.harness.worker_process import WorkerProcess, shared_worker
from mondrian_bo.search_space import Categorical, Float, Int, SearchSpace

__all__ = ["PEERS", "Peer", "PeerRun", "hebo_parameters", "smac_parameters"]


class Peer(NamedTuple):
    """A library that runs in an environment of its own.

    Attributes
    ----------
    key : str
        Its name in `peer_worker.STUDIES` and in `make_environment.RECIPES`.
    title : str
        Its name for messages.
    parameters : callable
        Yields the parameters of a space as the worker takes them.
    has_positions : bool
        Whether it gets the positions of choices instead of the choices.
    settings : mapping of str to tuple of str
        Its settings with their values, the default first.
    """

    key: str
    title: str
    parameters: Callable[[SearchSpace], Iterator[dict[str, Any]]]
    has_positions: bool
    settings: Mapping[str, tuple[str, ...]]

    @property
    def variable(self) -> str:
        """The environment variable that names its interpreter."""
        return f"MONDRIAN_BO_{self.key.upper()}_PYTHON"

    @property
    def remedy(self) -> str:
        """The command that makes its environment."""
        return f"python -m mondrian_bo.benchmarks.make_environment {self.key} DIR"

    @property
    def is_installed(self) -> bool:
        """Whether its interpreter has a name."""
        return bool(os.environ.get(self.variable))

    def worker(self) -> WorkerProcess:
        """Return the worker of this process, which its runs share, one after another.

        Raises
        ------
        ValueError
            If the variable names no interpreter that runs.
        """
        python = os.environ.get(self.variable)
        if not python:
            raise ValueError(
                f"{self.variable} does not name an interpreter that has {self.title}; `"
                f"{self.remedy}` makes one"
            )
        purpose = f"run {self.title}; `{self.remedy}` makes an environment that can"
        return shared_worker(Path(python), peer_worker.__file__, purpose)


class PeerRun:
    """One run of a peer, which is asked for trials of a problem and told their values.

    Parameters
    ----------
    peer : Peer
        The library.
    space : SearchSpace
        The problem's parameters.
    seed : int
        Seed of the run.
    n_trials : int
        Length of the run.
    batch : int, default=1
        Number of suggestions that are made at once.
    **settings : str
        Settings of the peer.

    Raises
    ------
    ValueError
        If the peer does not take the space, or its interpreter cannot run it.
    """

    def __init__(
        self,
        peer: Peer,
        space: SearchSpace,
        seed: int,
        n_trials: int,
        batch: int = 1,
        **settings: str,
    ) -> None:
        start = {"parameters": list(peer.parameters(space)), "seed": seed, "n_trials": n_trials}
        self._worker = peer.worker()
        self._worker.ask("start", library=peer.key, **start, **settings)
        self._peer = peer
        self._space = space
        self._batch = batch
        self._suggestions: deque[dict[str, Any]] = deque()

    def ask(self) -> tuple[dict[str, Any], float]:
        """Return the next parameters and the seconds they took; the first trial has number 0.

        Raises
        ------
        ValueError
            If the peer has suggested every point of a finite space.
        """
        started = time.perf_counter()
        if not self._suggestions:
            self._suggestions.extend(self._worker.ask("suggest", n=self._batch))
        if not self._suggestions:
            raise ValueError(f"{self._peer.title} has no further suggestion for this space")
        params = self._suggestions.popleft()
        for name, value in params.items():
            parameter = self._space[name]
            # The logarithm of a bound, raised to a power again, may lie outside by rounding.
            if isinstance(parameter, Float):
                params[name] = min(max(value, parameter.low), parameter.high)
            elif isinstance(parameter, Categorical) and self._peer.has_positions:
                params[name] = parameter.choices[value]
        return params, time.perf_counter() - started

    def tell(self, number: int, value: float) -> float:
        """Report the value of a trial; return the seconds it took."""
        started = time.perf_counter()
        self._worker.ask("observe", number=number, value=value)
        return time.perf_counter() - started


def hebo_parameters(space: SearchSpace) -> Iterator[dict[str, Any]]:
    """Yield the parameters of a space as HEBO's design space parses them.

    Parameters
    ----------
    space : SearchSpace
        The parameters.

    Yields
    ------
    dict
        Name, type and bounds or categories.

    Raises
    ------
    ValueError
        If a parameter is conditional or has a step.
    """
    for name, parameter in space.items():
        if parameter.condition is not None:
            raise ValueError("HEBO takes no conditional parameters")
        if isinstance(parameter, Categorical):
            choices = list(parameter.choices)
            if set(choices) == {False, True} and all(isinstance(one, bool) for one in choices):
                yield {"name": name, "type": "bool"}
            else:
                yield {"name": name, "type": "cat", "categories": choices}
            continue
        _refuse_steps(parameter, "HEBO")
        is_float = isinstance(parameter, Float)
        kind = ("pow" if is_float else "pow_int") if parameter.log else "num" if is_float else "int"
        yield {"name": name, "type": kind, "lb": parameter.low, "ub": parameter.high}


def smac_parameters(space: SearchSpace) -> Iterator[dict[str, Any]]:
    """Yield the parameters of a space as :class:`peer_worker.SmacStudy` takes them.

    A dictionary has a name, bounds or a number of choices, and the condition if there is one. As in
    :func:`hebo_parameters`, a step is a ValueError.
    """
    for name, parameter in space.items():
        found: dict[str, Any] = {"name": name}
        if isinstance(parameter, Categorical):
            found["n_choices"] = len(parameter.choices)
        else:
            _refuse_steps(parameter, "SMAC")
            found |= {"low": parameter.low, "high": parameter.high, "log": parameter.log}
            found["is_integer"] = isinstance(parameter, Int)
        if (condition := parameter.condition) is not None:
            parent = space[condition.parent]
            values = condition.values
            if isinstance(parent, Categorical):
                values = tuple(map(parent.index, values))
            found |= {"parent": condition.parent, "values": list(values)}
        yield found


def _refuse_steps(parameter: Float | Int, title: str) -> None:
    if parameter.step is not None and (isinstance(parameter, Float) or parameter.step != 1):
        raise ValueError(f"{title} is not run on parameters with steps")


PEERS = {
    "hebo": Peer("hebo", "HEBO", hebo_parameters, has_positions=False, settings={}),
    "smac": Peer(
        "smac",
        "SMAC",
        smac_parameters,
        has_positions=True,
        # A forest, and a Gaussian process.
        settings={"facade": ("HyperparameterOptimizationFacade", "BlackBoxFacade")},
    ),
}
"""The peers by their names as samplers."""

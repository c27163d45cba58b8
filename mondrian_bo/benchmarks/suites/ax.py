"""The suite ``ax``: CPU time per trial in Ax with our strategies, bare ones and Ax's default."""

from __future__ import annotations

import statistics
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from copy import deepcopy
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
import torch
from ax.adapter.registry import (
    Derelativize,
    GeneratorRegistryBase,
    GeneratorSetup,
    Mixed_transforms,
)
from ax.adapter.torch import TorchAdapter
from ax.generation_strategy.external_generation_node import ExternalGenerationNode
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generators.torch_base import TorchGenerator, TorchGenResults
from tqdm import tqdm

from mondrian_bo.benchmarks.harness.ax_run import AxRun, configure
from mondrian_bo.search_space import Float, SearchSpace

_N_DIMENSIONS = 6
"""Parameters of the search space: those of Hartmann-6, a common size."""

_N_MEASURED = 11
"""Measured trials per strategy, of which the median is reported; odd, so that it is one of them."""

_N_MEASURED_DEFAULT = 3
"""Measured trials of Ax's default, which takes seconds per trial."""

_SIZES = (100, 200, 1000)
"""Trials before the measured ones: a short, a usual and a long experiment."""

_DEFAULT = "Ax's default"
"""Name of Ax's default strategy in the table."""

_SPACE = SearchSpace({f"x{i}": Float(0.0, 1.0) for i in range(_N_DIMENSIONS)})
"""Search space of the measured trials: the unit cube."""


class _BareNode(ExternalGenerationNode):
    """The candidate route with uniform candidates; it ignores the data."""

    def __init__(self) -> None:
        super().__init__("Bare", should_deduplicate=False)
        self._rng = np.random.default_rng(0)

    def update_generator_state(self, experiment: Any, data: Any) -> None:
        """Do nothing."""

    def get_next_candidate(self, pending_parameters: list[Any]) -> dict[str, Any]:
        """Draw uniformly."""
        return dict(zip(_SPACE, self._rng.random(_N_DIMENSIONS).tolist(), strict=True))


class _BareGenerator(TorchGenerator):
    """The predictive route with uniform candidates and predictions of zero."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def fit(self, datasets: Any, search_space_digest: Any, candidate_metadata: Any = None) -> None:
        """Do nothing."""

    def predict(self, X: Any, use_posterior_predictive: bool = False) -> tuple[Any, Any]:
        """Predict zero."""
        shape = (len(X), 1)
        return torch.zeros(shape, dtype=torch.double), torch.ones((*shape, 1), dtype=torch.double)

    def gen(self, n: int, search_space_digest: Any, torch_opt_config: Any) -> Any:
        """Draw uniformly."""
        points = torch.from_numpy(self._rng.random((n, _N_DIMENSIONS)))
        return TorchGenResults(points=points, weights=torch.ones(n))

    def best_point(self, search_space_digest: Any, torch_opt_config: Any) -> Any:
        """Return a corner."""
        return torch.zeros(_N_DIMENSIONS, dtype=torch.double)


class _Bare(GeneratorRegistryBase, Enum):
    BARE = "Bare"

    @property
    def GENERATOR_KEY_TO_GENERATOR_SETUP(self) -> dict[str, GeneratorSetup]:
        """The plain torch adapter, with the transforms that suit trees."""
        transforms = [*Mixed_transforms, Derelativize]
        return {"Bare": GeneratorSetup(TorchAdapter, _BareGenerator, transforms)}


def _bare_predictive(client: Any) -> None:
    node = GenerationNode("Bare", [GeneratorSpec(_Bare.BARE)])
    client.set_generation_strategy(GenerationStrategy(name="Bare", nodes=[node]))


def _bare_candidate(client: Any) -> None:
    client.set_generation_strategy(GenerationStrategy(name="Bare", nodes=[_BareNode()]))


def run(arguments: Namespace) -> None:
    """Measure, print a table and write it to the directory of the results.

    The trials of all strategies take turns, so that disturbances of the machine affect all alike.

    Parameters
    ----------
    arguments : Namespace
        ``out``: the directory.
    """
    lines = [
        f"CPU milliseconds per trial (ask and tell), {_N_DIMENSIONS} parameters, median of "
        f"{_N_MEASURED} ({_DEFAULT}: {_N_MEASURED_DEFAULT}); bare: uniform candidates on the same "
        "route, no model.",
        "",
        "| strategy | " + " | ".join(f"n={n}" for n in _SIZES) + " |",
        "| --- |" + " ---: |" * len(_SIZES),
    ]
    columns = [_measure(n) for n in tqdm(_SIZES)]
    for name in columns[0]:
        cells = [f"{column[name]:.1f}" for column in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    text = "\n".join(lines) + "\n"
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "ax-overhead.md").write_text(text, encoding="utf-8")
    print(text, end="")


def _measure(n_trials: int) -> dict[str, float]:
    """Return the median milliseconds per trial of each strategy after `n_trials` trials."""
    candidate = partial(configure, strategy="candidate", seed=0)
    predictive = partial(configure, strategy="predictive", seed=0)
    configures: dict[str, Callable[[Any], None]] = {
        "candidate route, bare": _bare_candidate,
        "candidate route, ours": candidate,
        "candidate route, ours, forest": partial(candidate, surrogate="forest"),
        "predictive route, bare": _bare_predictive,
        "predictive route, ours": predictive,
        "predictive route, ours, forest": partial(predictive, surrogate="forest"),
        _DEFAULT: partial(configure, strategy="default", seed=0),
    }
    filled = AxRun(_SPACE, "default", 0)
    for point in np.random.default_rng(1).random((n_trials, _N_DIMENSIONS)).tolist():
        filled.attach(dict(zip(_SPACE, point, strict=True)), _objective(point))
    harnesses = {name: _copy(filled, one) for name, one in configures.items()}
    measured: dict[str, list[float]] = {name: [] for name in harnesses}
    for number in range(_N_MEASURED + 1):
        for name, harness in harnesses.items():
            if name == _DEFAULT and number > _N_MEASURED_DEFAULT:
                continue
            started = time.process_time()
            parameters, _ = harness.ask()
            harness.tell(number, _objective(list(parameters.values())))
            if number:  # The first one includes learning all the earlier trials.
                measured[name].append(1e3 * (time.process_time() - started))
    return {name: statistics.median(times) for name, times in measured.items()}


def _copy(filled: AxRun, set_strategy: Callable[[Any], None]) -> AxRun:
    """Return a copy of an experiment with another strategy; filling a new one takes longer."""
    harness = AxRun(_SPACE, "default", 0)
    harness.client.set_experiment(deepcopy(filled.client._experiment))
    set_strategy(harness.client)
    return harness


def _objective(point: Sequence[float]) -> float:
    x = np.array(point)
    return float(((x - 0.3) ** 2).sum() + np.sin(5.0 * x).sum())

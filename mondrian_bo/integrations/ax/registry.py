"""The generators of this package as Ax knows them: a registry, and how to save and load."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ax.adapter.registry import GeneratorRegistryBase, GeneratorSetup
from ax.storage.json_store import registry as json_registry

from mondrian_bo.acquisitions import (
    ExpectedImprovement,
    LogExpectedImprovement,
    ProbabilityOfImprovement,
    ThompsonSampling,
    UpperConfidenceBound,
)
from mondrian_bo.integrations.ax.adapter import MondrianAdapter
from mondrian_bo.integrations.ax.generator import MondrianGenerator
from mondrian_bo.integrations.ax.node import MondrianGenerationNode

_SETUPS = {
    "Mondrian": GeneratorSetup(
        adapter_class=MondrianAdapter,
        generator_class=MondrianGenerator,
        transforms=[],
        # Dependent parameters stay dependent.
        standard_adapter_kwargs={"transform_configs": {"Cast": {"flatten_hss": False}}},
    )
}

_ACQUISITIONS = (
    ExpectedImprovement,
    LogExpectedImprovement,
    ProbabilityOfImprovement,
    ThompsonSampling,
    UpperConfidenceBound,
)


class MondrianGenerators(GeneratorRegistryBase, Enum):
    """Registry of the generators of this package, to be named in a ``GeneratorSpec``."""

    MONDRIAN = "Mondrian"

    @property
    def GENERATOR_KEY_TO_GENERATOR_SETUP(self) -> dict[str, GeneratorSetup]:
        """What each member consists of."""
        return _SETUPS


def register_storage() -> None:
    """Teach Ax's JSON storage the classes of this package; once is enough."""
    json_registry.CORE_ENCODER_REGISTRY[MondrianGenerationNode] = _node_to_dict
    named: tuple[type[Any], ...] = (MondrianGenerators, MondrianGenerationNode, *_ACQUISITIONS)
    for kind in named:
        json_registry.CORE_DECODER_REGISTRY.setdefault(kind.__name__, kind)


def _node_to_dict(node: MondrianGenerationNode) -> dict[str, Any]:
    return {"__type": type(node).__name__, **node.serialize_init_args(node)}

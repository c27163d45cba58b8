"""The registry of this package's generators in Ax, and their JSON storage."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ax.adapter.registry import GeneratorRegistryBase, GeneratorSetup
from ax.storage.json_store import registry as json_registry

from mondrian_bo.acquisitions import ACQUISITIONS
from mondrian_bo.integrations.ax.adapter import MondrianAdapter
from mondrian_bo.integrations.ax.generator import MondrianGenerator
from mondrian_bo.integrations.ax.node import MondrianGenerationNode
from mondrian_bo.optimizer.saving.saved_settings import decode_acquisition, encode_acquisition
from mondrian_bo.optimizer.search.portfolio import Portfolio

_SETUPS = {
    "Mondrian": GeneratorSetup(
        adapter_class=MondrianAdapter,
        generator_class=MondrianGenerator,
        transforms=[],
        # Keeps dependent parameters as they are.
        standard_adapter_kwargs={"transform_configs": {"Cast": {"flatten_hss": False}}},
    )
}
"""Adapter, generator and transforms by name of the generator."""

_PORTFOLIO = "MondrianPortfolio"
"""Name of portfolios in files. They have a format of their own, as Ax has an `Arm`, too."""


class MondrianGenerators(GeneratorRegistryBase, Enum):
    """Generators of this package, for a ``GeneratorSpec``."""

    MONDRIAN = "Mondrian"

    @property
    def GENERATOR_KEY_TO_GENERATOR_SETUP(self) -> dict[str, GeneratorSetup]:
        """Adapter, generator and transforms of each member."""
        return _SETUPS


def register_storage() -> None:
    """Register the classes of this package with Ax's JSON storage."""
    json_registry.CORE_ENCODER_REGISTRY[MondrianGenerationNode] = _node_to_dict
    json_registry.CORE_ENCODER_REGISTRY[Portfolio] = _portfolio_to_dict
    json_registry.CORE_CLASS_DECODER_REGISTRY[_PORTFOLIO] = _portfolio_from_dict
    # Settings may hold acquisitions, which Ax must be able to load.
    own: tuple[type[Any], ...] = MondrianGenerators, MondrianGenerationNode
    for kind in (*own, *ACQUISITIONS.values()):
        json_registry.CORE_DECODER_REGISTRY.setdefault(kind.__name__, kind)


def _node_to_dict(node: MondrianGenerationNode) -> dict[str, Any]:
    return {"__type": type(node).__name__, **node.serialize_init_args(node)}


def _portfolio_to_dict(portfolio: Portfolio) -> dict[str, Any]:
    return {"__type": _PORTFOLIO, "portfolio": encode_acquisition(portfolio)}


def _portfolio_from_dict(encoded: dict[str, Any]) -> Any:
    return decode_acquisition(encoded["portfolio"])

"""The optimizer's surrogates by name."""

from __future__ import annotations

from importlib import import_module
from typing import Literal, TypeAlias

from mondrian_bo.shared.garbage_collection import without_collections
from mondrian_bo.surrogates.base import SurrogateFactory

SurrogateName: TypeAlias = Literal["gaussian_process", "forest", "amf", "kernel"]
"""Names of the surrogates."""

SURROGATES: dict[SurrogateName, str] = {
    "gaussian_process": "gaussian_process_forest.surrogate:GaussianProcessForestSurrogate",
    "forest": "mondrian_forest.surrogate:ForestSurrogate",
    "amf": "amf.surrogate:AMFSurrogate",
    "kernel": "mondrian_kernel.surrogate:KernelSurrogate",
}
"""Module and class of each: importing one is slow, and a search needs one."""


def get_surrogate(name: SurrogateName) -> SurrogateFactory:
    """Return the class of a surrogate.

    Parameters
    ----------
    name : str
        One of `SURROGATES`.

    Returns
    -------
    SurrogateFactory
        The class.
    """
    module, _, attribute = SURROGATES[name].partition(":")
    home = f"mondrian_bo.surrogates.{module}"
    with without_collections(home):
        found: SurrogateFactory = getattr(import_module(home), attribute)
    return found

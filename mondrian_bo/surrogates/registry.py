"""The optimizer's surrogates by name."""

from __future__ import annotations

from collections.abc import Callable

from mondrian_bo.surrogates.amf.surrogate import AMFSurrogate
from mondrian_bo.surrogates.base import Surrogate
from mondrian_bo.surrogates.gaussian_process_forest.surrogate import GaussianProcessForestSurrogate
from mondrian_bo.surrogates.mondrian_forest.surrogate import ForestSurrogate
from mondrian_bo.surrogates.mondrian_kernel.surrogate import KernelSurrogate

SURROGATES: dict[str, Callable[..., Surrogate]] = {
    "gaussian_process": GaussianProcessForestSurrogate,
    "forest": ForestSurrogate,
    "amf": AMFSurrogate,
    "kernel": KernelSurrogate,
}

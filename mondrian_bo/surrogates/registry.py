"""The optimizer's surrogates by name."""

from __future__ import annotations

from collections.abc import Callable

from mondrian_bo.surrogates.amf_surrogate import AMFSurrogate
from mondrian_bo.surrogates.base import Surrogate
from mondrian_bo.surrogates.forest_surrogate import ForestSurrogate
from mondrian_bo.surrogates.kernel_surrogate import KernelSurrogate
from mondrian_bo.surrogates.process_surrogate import ProcessSurrogate

SURROGATES: dict[str, Callable[..., Surrogate]] = {
    "gaussian_process": ProcessSurrogate,
    "forest": ForestSurrogate,
    "amf": AMFSurrogate,
    "kernel": KernelSurrogate,
}

"""The optimizer's surrogates by name."""

from __future__ import annotations

from mondrian_bo.surrogates.amf_surrogate import AMFSurrogate
from mondrian_bo.surrogates.forest_surrogate import ForestSurrogate

SURROGATES: dict[str, type[ForestSurrogate] | type[AMFSurrogate]] = {
    "forest": ForestSurrogate,
    "amf": AMFSurrogate,
}

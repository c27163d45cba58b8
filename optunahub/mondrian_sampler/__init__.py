"""MondrianSampler of mondrian-bo for OptunaHub."""

from mondrian_bo import MondrianSampler

__all__ = ["MondrianSampler"]

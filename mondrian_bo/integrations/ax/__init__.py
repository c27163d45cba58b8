"""The optimizer as generators of Ax 1.3 (extra ``ax``); never imported by the package root.

``space`` translates search spaces and parameterizations, ``goal`` optimization configs, and
``observations`` experiments. ``engine`` holds the optimizer and the models of outcomes, for both
routes: ``node`` is the candidate route, ``generator`` and ``adapter`` are the predictive route.
``registry`` has names and storage. ``strategy`` puts all of it together in one call.
"""

from mondrian_bo.integrations.ax.adapter import MondrianAdapter
from mondrian_bo.integrations.ax.generator import MondrianGenerator
from mondrian_bo.integrations.ax.node import MondrianGenerationNode
from mondrian_bo.integrations.ax.registry import MondrianGenerators, register_storage
from mondrian_bo.integrations.ax.strategy import mondrian_generation_strategy

register_storage()

__all__ = [
    "MondrianAdapter",
    "MondrianGenerationNode",
    "MondrianGenerator",
    "MondrianGenerators",
    "mondrian_generation_strategy",
]

"""Mondrian forests as generators of Ax 1.3 (extra ``ax``); never imported by the package root.

``space`` (Ax's search spaces and parameterizations), ``goal`` (optimization configs),
``observations`` (experiments), ``engine`` (one optimizer and a model per outcome, for both routes),
``node`` (the candidate route), ``generator`` and ``adapter`` (the predictive route), ``registry``
(names and storage), ``strategy`` (all of it in one call).
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

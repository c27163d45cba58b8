"""Parameters and their encoding: values of a search space <-> rows of the unit cube.

``conditions`` says when a parameter is active, ``parameters`` holds Float and Int with the
arithmetic of their grids, and ``categorical`` Categorical. ``links`` states conditions in terms of
columns, ``space`` is the whole space, ``restricted`` a part of it, with fixed values and linear
constraints, and ``lenient_encoding`` encodes values that the space does not hold.
"""

from mondrian_bo.search_space.categorical import Categorical
from mondrian_bo.search_space.conditions import Condition
from mondrian_bo.search_space.parameters import Float, Int, Parameter
from mondrian_bo.search_space.restricted import LinearInequality, RestrictedSpace
from mondrian_bo.search_space.space import SearchSpace

__all__ = [
    "Categorical",
    "Condition",
    "Float",
    "Int",
    "LinearInequality",
    "Parameter",
    "RestrictedSpace",
    "SearchSpace",
]

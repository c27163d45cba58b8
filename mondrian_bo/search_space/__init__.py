"""Parameters and their encoding: values of a search space <-> rows of the unit cube.

``parameters`` (Float, Int, Categorical), ``conditions`` (when a parameter is active), ``grids``
(where the values of a grid sit in the unit interval), ``space`` (the whole), ``restricted`` (a
part of it: fixed values, linear constraints).
"""

from mondrian_bo.search_space.conditions import Condition
from mondrian_bo.search_space.parameters import Categorical, Float, Int, Parameter
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

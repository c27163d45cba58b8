"""Mondrian trees: numba functions over NamedTuples of arrays.

``tree`` (the arrays), ``mondrian`` (Algorithms 1-4), ``gaussian`` (messages), ``predict``
(Algorithm 5), ``journal`` (undo), ``random`` (streams), ``forest`` (the object that owns the arrays
of many trees). Nothing is compiled at import.
"""

"""Mondrian trees: numba functions over NamedTuples of arrays.

``tree`` (the arrays), ``mondrian`` (Algorithms 1-4), ``gaussian`` (messages), ``predict``
(Algorithm 5), ``journal`` (undo), ``random`` (streams). Nothing is compiled at import. The object
that owns the arrays of a growing forest is
:class:`mondrian_bo.surrogates.mondrian_forest.forest`'s.
"""

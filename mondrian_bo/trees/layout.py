"""The constants that index the arrays of a :class:`mondrian_bo.trees.tree.Tree`."""

NONE = -1
"""Marks an absent node, child or point."""

PAUSED = -2
"""Marks a paused leaf, in the place of its split dimension."""

LEFT, RIGHT = 0, 1
"""Entries of an internal node's ``children``."""

FIRST_POINT = RIGHT
"""Entry of a leaf's ``children``: the head of the linked list of its points."""

LOWER, UPPER = 0, 1
"""Rows of a box: the lower and the upper corner."""

N_NODES, ROOT, N_BOXES = 0, 1, 2
"""Entries of ``counters``."""

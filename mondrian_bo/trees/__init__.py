"""Mondrian trees: compiled functions over NamedTuples of arrays. Nothing is compiled at import.

=========================  ===========================================================
``layout``                 the constants that index the arrays of trees
``tree``                   the arrays of trees and forests, basic operations on them
``growth``                 Algorithms 1 to 4 of Lakshminarayanan2016: batch and online
``traversal``              many points going down a tree together
``upward``                 statistics of nodes that depend on what is below
``hierarchical_gaussian``  the hierarchical Gaussian's messages
``evidence``               the evidence of trees, at any lifetime
``predict``                Algorithm 5: predictive mixtures; ``mixture_walk`` has what points
                           collect on their way down
``posterior_draw``         random functions from the posterior
``leave_one_out``          moments of each target given all others
``equivalent_weights``     how much each target counts in a prediction
``affine``...              the same with an affine function at each node
``leaf_models``            leaves that carry models of their own
``kneser_ney``             class probabilities (Lakshminarayanan2014)
``aggregation``...         AMF (Mourtada2021); ``stacking_forecasts`` has its four forecasts,
                           ``unrestricted_growth`` grows trees on a box, ``recycling`` makes
                           room in full ones
``lifetime_partitions``    cells of trees at any lifetime (Balog2016)
``undo``                   takes insertions back
``numbering``, ``memory``  the layout of the arrays in memory
``random``                 random streams
``compiling``              options of numba
=========================  ===========================================================

:class:`mondrian_bo.surrogates.shared.growing_forest.GrowingForest` owns the arrays of a forest.
"""

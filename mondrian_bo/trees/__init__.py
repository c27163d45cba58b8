"""Mondrian trees: compiled functions over NamedTuples of arrays. Nothing is compiled at import.

=========================  ===========================================================
``tree``                   the arrays of trees and forests, basic operations on them
``growth``                 Algorithms 1 to 4 of Lakshminarayanan2016: batch and online
``traversal``              many points going down a tree together
``hierarchical_gaussian``  the hierarchical Gaussian's messages
``predict``                Algorithm 5: predictive mixtures
``posterior_draw``         random functions from the posterior
``leave_one_out``          moments of each target given all others
``leaf_models``            leaves that carry models of their own
``kneser_ney``             class probabilities (Lakshminarayanan2014)
``aggregation``...         AMF (Mourtada2021); ``cells`` grows its unrestricted trees
``partition``              cells of trees at any lifetime (Balog2016)
``undo``                   takes insertions back
``numbering``, ``memory``  the layout of the arrays in memory
``random``                 random streams
``compiling``              options of numba
=========================  ===========================================================

:class:`mondrian_bo.surrogates.shared.growing_forest.GrowingForest` owns the arrays of a forest.
"""

"""The Mondrian grid: random features for the Laplace kernel with a lifetime for each dimension.

Balog2016thesis, chapter 5.
"""

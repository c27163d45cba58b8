"""The Mondrian grid: random features for the Laplace kernel with a lifetime for each dimension.

Paper 001, chapter 5.
"""

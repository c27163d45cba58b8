"""The Mondrian kernel: random features for the Laplace kernel, and learning with them.

Balog2016 and Balog2016thesis (chapters 3 and 4).
"""

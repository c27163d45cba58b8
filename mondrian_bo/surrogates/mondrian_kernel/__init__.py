"""The Mondrian kernel: random features for the Laplace kernel, and learning with them.

Papers 000 and 001 (chapters 3 and 4).
"""

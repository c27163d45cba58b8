"""Mondrian forests of constant leaves: the hierarchical Gaussian and class counts."""

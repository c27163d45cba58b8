"""Maximisation of the acquisition: candidates, local search, quasi-random points."""

"""Plots of a study and of its model, with matplotlib. :mod:`mondrian_bo.plotting` is their face."""

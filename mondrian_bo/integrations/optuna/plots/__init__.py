"""Plots of a study and of its model: computed once, drawn with matplotlib or plotly."""

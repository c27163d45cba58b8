"""Gaussian processes on the blocks of Mondrian trees."""

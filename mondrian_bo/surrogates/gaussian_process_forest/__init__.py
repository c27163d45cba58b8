"""Mondrian forests whose leaves carry Gaussian processes."""

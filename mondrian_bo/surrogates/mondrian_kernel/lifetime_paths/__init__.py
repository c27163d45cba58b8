"""Exact and stochastic solutions at every lifetime (Balog2016, section 4)."""

"""Density estimation with Mondrian forests (Balog2016thesis, section 2 and appendix C)."""

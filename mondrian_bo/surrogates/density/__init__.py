"""Density estimation with Mondrian forests (paper 001, section 2 and appendix C)."""

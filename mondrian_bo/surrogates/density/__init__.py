"""Density estimation with Mondrian forests (Balog2016thesis, chapter 2 and appendix C)."""

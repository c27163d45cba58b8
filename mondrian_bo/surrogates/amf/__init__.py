"""Aggregated Mondrian forests (Mourtada2021)."""

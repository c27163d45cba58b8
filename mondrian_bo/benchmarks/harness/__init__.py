"""Runs problems with samplers: the samplers, the loops of Optuna, Ax and peers, result files."""

"""Runs problems with samplers: the samplers, the loops of Optuna, Ax and HEBO, files of results."""

"""Runs problems with samplers: the samplers, Optuna's and Ax's loops, and files of results."""

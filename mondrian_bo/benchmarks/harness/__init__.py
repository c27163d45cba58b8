"""Runs problems with samplers: the samplers, the loops of Optuna, Ax and peers, result files.

Processes in other Python environments and limits of threads are here, too.
"""

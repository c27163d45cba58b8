"""Gaussian processes: kernels, hyper-parameters and draws from the prior."""

"""Benchmarks.

``problems`` are what samplers are compared on, ``tables`` the measured grids behind some of them.
``harness`` runs problems with samplers and keeps the results, ``report`` makes tables and pictures
of them. ``suites``, ``speed`` and ``streams`` are suites of ``mondrian-bo bench run`` with programs
of their own. ``ablation``, ``coverage`` and ``kernels`` are commands: ``python -m
mondrian_bo.benchmarks.coverage --help``.
"""

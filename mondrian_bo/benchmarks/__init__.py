"""Benchmarks.

``problems`` are what samplers are compared on, ``tables`` the measured grids behind some of them.
``harness`` runs problems with samplers and keeps the results, ``report`` makes tables and pictures
of them. ``suites``, ``curves``, ``speed`` and ``streams`` are suites of ``mondrian-bo bench run``
with programs of their own. ``ablation``, ``coverage``, ``kernels``, ``bbob_table``,
``bayesmark_baseline``, ``bayesmark_table`` and ``make_environment`` are commands: ``python -m
mondrian_bo.benchmarks.coverage --help``. ``worker_process`` asks processes in other Python
environments.
"""

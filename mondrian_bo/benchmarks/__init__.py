"""Benchmarks.

- ``problems``: what samplers are compared on; ``tables`` has the measured grids behind some of
  them.
- ``harness``: runs problems with samplers and keeps the results.
- ``report``: makes tables and pictures of results.
- ``suites``: the suites of ``mondrian-bo bench run`` that have programs of their own.
- ``ablation``, ``coverage``, ``kernels``, ``bbob_table``, ``bayesmark_baseline``,
  ``bayesmark_table`` and ``make_environment``: commands, such as ``python -m
  mondrian_bo.benchmarks.coverage --help``.
"""

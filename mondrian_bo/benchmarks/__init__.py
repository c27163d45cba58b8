"""Benchmarks: problems, measured tables, peers, the runner and the report."""

"""Several objectives: the Pareto front, and the hypervolume that a trial may add."""

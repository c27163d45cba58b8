"""Random partition kernels (paper 002): how often random partitions put two points together."""

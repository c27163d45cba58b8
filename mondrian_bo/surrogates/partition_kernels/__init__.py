"""Random partition kernels (Davies2014): how often random partitions put two points together."""

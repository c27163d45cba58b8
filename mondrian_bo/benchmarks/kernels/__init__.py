"""CPU time of kernels of random partitions."""

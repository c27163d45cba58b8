"""What kernels of random partitions cost."""

"""A search that starts from the trials of earlier studies."""

"""A search that chooses the fidelity of each trial, by what trials cost."""

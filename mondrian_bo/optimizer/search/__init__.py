"""A search: its settings, the choice of the next trial, and restarts."""

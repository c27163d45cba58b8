"""The file of a saved optimizer: what was told, and the settings."""

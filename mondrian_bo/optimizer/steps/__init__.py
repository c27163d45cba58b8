"""Suggestions that follow from the trials without an acquisition."""

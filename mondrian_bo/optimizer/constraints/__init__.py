"""Constraints on outcomes: models, the probability that all hold, exactly linear ones."""

"""Adapters: each translates a framework's spaces and trials to the same optimizer."""

"""Recorded training curves, and the suite ``curves`` that replays them second by second."""

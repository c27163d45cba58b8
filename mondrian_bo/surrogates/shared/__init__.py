"""Code that several model families share."""

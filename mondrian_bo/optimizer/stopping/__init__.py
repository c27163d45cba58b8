"""What a study may still gain."""

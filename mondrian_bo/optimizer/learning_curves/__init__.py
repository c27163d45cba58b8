"""What a trial will end with, from what it has reported; for pruners, apart from the search."""

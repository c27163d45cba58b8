"""What all parts of the optimizer use: trials, checks of user input, and calls that are undone."""

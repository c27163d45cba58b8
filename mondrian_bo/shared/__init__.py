"""What all packages share: array types, checks of arguments, arithmetic, threads and locks."""

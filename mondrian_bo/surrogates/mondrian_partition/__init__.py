"""A Mondrian process on a box, as an object: sampled, extended, restricted, evolved, drawn."""

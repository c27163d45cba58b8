"""Models of outcomes: transformed values, and a surrogate of them."""

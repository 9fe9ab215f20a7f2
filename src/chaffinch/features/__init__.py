"""Features: tokens to the numbers that models read."""

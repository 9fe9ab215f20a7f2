"""Notes rewritten to learn from: other identifiers in the same context, the same text in another style."""

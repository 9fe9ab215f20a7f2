"""Identifiers found by rules: the patterns by idea, and `find`, which reads and settles them."""

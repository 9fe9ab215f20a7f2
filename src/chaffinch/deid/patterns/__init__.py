"""Identifiers found by rules: modules of patterns by topic, and `find`, which runs them and resolves overlaps."""

"""Tagging methods, one folder each: fill a lattice, learn from its posterior."""

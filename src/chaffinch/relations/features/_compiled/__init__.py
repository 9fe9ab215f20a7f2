"""Compiled loops that make the features of candidates."""

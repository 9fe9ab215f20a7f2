"""Compiled loops that turn tokens into feature keys."""

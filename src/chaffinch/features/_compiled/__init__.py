"""Compiled loops that turn tokens into keys of features."""

"""Tokens to numbers: what the models see of a text."""

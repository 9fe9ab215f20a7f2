"""Decoding of models whose labels have hidden states."""

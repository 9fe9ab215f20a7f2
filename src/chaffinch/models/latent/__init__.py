"""Decoding of chains whose tags have several hidden states."""

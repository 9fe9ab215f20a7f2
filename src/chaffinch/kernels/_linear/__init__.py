"""Compiled loops of linear chains: decoding, passive-aggressive and gradient steps."""

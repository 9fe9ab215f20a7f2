"""Compiled scoring: feature names as hash keys, looked up in a model's table."""

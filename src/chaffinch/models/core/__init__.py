"""Shared by all methods: labels, training data, batches, linear models, confidence, explanations."""

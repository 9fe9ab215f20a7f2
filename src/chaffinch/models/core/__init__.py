"""What all methods share: labels, training data, batches, linear parts, confidence, explanations."""

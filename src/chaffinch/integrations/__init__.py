"""Adapters for other libraries, each an extra: spaCy components, a Presidio recogniser, a scikit-learn estimator."""

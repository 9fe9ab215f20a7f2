"""Class HMM: several states per class with feature-based emissions."""

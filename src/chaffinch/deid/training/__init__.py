"""Training and adaptation of a detector's model."""

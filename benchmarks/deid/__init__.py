"""The deid benchmark."""

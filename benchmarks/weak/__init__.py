"""The weak benchmark."""

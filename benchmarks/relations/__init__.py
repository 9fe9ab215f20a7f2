"""The relations benchmark."""

"""The classhmm benchmark."""

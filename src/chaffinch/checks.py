"""Checks of settings."""

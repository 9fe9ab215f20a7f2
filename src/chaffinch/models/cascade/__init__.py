"""Cascade: an online passive-aggressive linear chain."""

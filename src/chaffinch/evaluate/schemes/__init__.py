"""Scoring schemes: spans, tokens, and those of the official scorers."""

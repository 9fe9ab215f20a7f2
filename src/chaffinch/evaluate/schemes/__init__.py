"""Scoring schemes: spans, tokens, and those of official scorers."""

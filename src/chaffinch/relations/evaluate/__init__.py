"""Scores, curves and reports of relations."""

"""Scores, precision-recall curves and reports of relation extraction."""

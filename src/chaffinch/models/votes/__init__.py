"""Aggregation models: they estimate the quality of weak sources and combine their votes."""

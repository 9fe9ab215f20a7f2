"""Voices beside the taggers: the contextual reader, and the second stage over the taggers."""

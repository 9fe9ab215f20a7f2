"""Batches of notes: what a worker gets at once, and the one patient whose notes are more than that."""

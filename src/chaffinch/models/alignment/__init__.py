"""Alignment of repeated words: a name found once, thanks to a strong cue, is found throughout a patient's documents."""

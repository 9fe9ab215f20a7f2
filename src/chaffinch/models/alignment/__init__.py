"""Alignment of repeated words: a name found once, thanks to a strong cue, is found wherever its patient has it."""

"""Detection of identifiers by patterns, word lists, cues, taggers and known identifiers."""

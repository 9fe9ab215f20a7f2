"""Find identifiers: patterns, lists, cues, taggers and known identifiers, joined."""

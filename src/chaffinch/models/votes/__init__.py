"""Models of votes: how good each weak source is, and what they say together."""

"""A contextual reader: a small transformer that gives every token a distribution over labels, in numpy."""

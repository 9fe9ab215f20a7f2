"""CHMM: a conditional hidden Markov model over votes and contextual embeddings."""

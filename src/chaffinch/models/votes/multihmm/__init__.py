"""MultiHMM: a hidden Markov model over the votes of many sources."""

"""Features of candidates: words, paths, contexts, and the statistics of the phrase HMM."""

"""Features of candidates: words, paths, statistics of the phrase HMM."""

"""Relations and their entities at once, by the phrase HMM alone."""

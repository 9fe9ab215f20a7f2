"""The phrase HMM: relations from sentences of phrases."""

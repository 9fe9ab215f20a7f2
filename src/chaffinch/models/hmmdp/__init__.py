"""HMM-DP: a hidden Markov model with Dirichlet-process sub-tags."""

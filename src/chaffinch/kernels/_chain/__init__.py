"""Compiled loops of inference on chains: forward–backward, Viterbi, grouping of states into tags."""

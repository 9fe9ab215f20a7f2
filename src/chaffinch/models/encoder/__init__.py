"""Encoder: a local transformer, fine-tuned as a token classifier."""

"""The cascade: an online passive-aggressive linear chain, in one or two stages."""

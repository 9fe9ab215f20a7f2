"""The five publications: their tables by one command, ours beside the published figures."""

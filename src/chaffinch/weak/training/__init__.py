"""From votes to a tagger: alternate training, its students, checkpoints."""

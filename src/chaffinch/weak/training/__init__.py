"""Training taggers from votes: alternate training, its students and checkpoints."""

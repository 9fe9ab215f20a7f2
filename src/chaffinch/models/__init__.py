"""One module per method: fill a lattice, learn from it."""

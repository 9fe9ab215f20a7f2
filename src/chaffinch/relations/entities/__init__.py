"""Relations between given entities: reading, training, extraction."""

"""Relations between entities that are given: read, train, extract."""

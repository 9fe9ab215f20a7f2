"""The same pure functions over many documents, processes or machines."""

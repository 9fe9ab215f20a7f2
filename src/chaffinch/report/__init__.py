"""HTML pages, tables and plots as strings."""

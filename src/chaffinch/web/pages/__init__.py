"""Pages of the review station, rendered on the server, and what their scripts send and get."""

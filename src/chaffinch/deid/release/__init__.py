"""Release notes: replace identifiers, account for every document, and summarise the release on a page."""

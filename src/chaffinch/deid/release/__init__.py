"""Release notes: identifiers replaced, an account of it, a page that sums it up."""

"""Worker processes of a release: batches out, results in, and what ends one of them is found."""

"""Release jobs: run the de-identification functions over many documents, in batches and resumably."""

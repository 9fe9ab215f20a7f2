"""The tagger benchmark."""

"""The hmmdp benchmark."""

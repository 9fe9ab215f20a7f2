"""Tests of the features room."""

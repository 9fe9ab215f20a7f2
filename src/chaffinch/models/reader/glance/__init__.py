"""A glance: a net with one hidden layer that reads a word among its neighbours, many times as fast as a reader."""

"""The states of a class HMM described: what they show, which parts of spans they make, and their roles."""

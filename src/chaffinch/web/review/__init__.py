"""The review station: notes read by two people who do not see each other's work, differences settled by a third."""

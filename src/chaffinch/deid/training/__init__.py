"""Learn and adapt a detector."""

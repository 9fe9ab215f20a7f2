"""Dates in notes: read them, shift them by days in the same format, round them; start at `shift`."""

"""Dates as a note writes them: read, shifted by days in their format, rounded; begin at `shift`."""

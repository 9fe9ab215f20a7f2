"""Invented notes with marked identifiers: patients, pages, templates."""

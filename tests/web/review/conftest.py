"""Fixtures of all tests of the review station."""

from tests.web.review.databases import cheap_passwords, database_url, postgres

__all__ = ["cheap_passwords", "database_url", "postgres"]

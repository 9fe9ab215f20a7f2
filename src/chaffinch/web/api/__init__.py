"""The REST interface under /api/v1: typed JSON in and out, described by an OpenAPI document."""

"""Fixtures for all tests, and how hypothesis runs here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.canary import Canary

# Compiled kernels of a test run are kept in one place, outside the user's own cache; chosen before any is imported.
os.environ.setdefault("CHAFFINCH_CACHE", str(Path(__file__).parents[1] / ".pytest_cache" / "chaffinch"))

settings.register_profile("default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    """A word planted in documents, and a way to run commands that fails if it turns up where it must not."""
    return Canary(tmp_path)

"""Compiled kernels of a test run are kept in one place for the whole run, outside the user's own cache."""

from __future__ import annotations

import os
from pathlib import Path

# Before any kernel is imported: the folder is chosen once per process.
os.environ.setdefault("CHAFFINCH_CACHE", str(Path(__file__).parents[2] / ".pytest_cache" / "chaffinch"))

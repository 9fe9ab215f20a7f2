"""Arrays to disk and back: one safe file per model."""

from chaffinch.bundle.manifest import Manifest
from chaffinch.bundle.store import Bundle, find, load, save

__all__ = ["Bundle", "Manifest", "find", "load", "save"]

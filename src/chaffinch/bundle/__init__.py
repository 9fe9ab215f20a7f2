"""Model files: arrays, strings and a manifest in one file without code."""

from chaffinch.bundle.manifest import Manifest
from chaffinch.bundle.state import State
from chaffinch.bundle.store import Bundle, find, load, packaged_models, read_manifest, save

__all__ = ["Bundle", "Manifest", "State", "find", "load", "packaged_models", "read_manifest", "save"]

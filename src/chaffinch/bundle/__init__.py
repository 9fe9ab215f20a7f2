"""Model files: arrays, strings and a manifest in one file without code."""

from chaffinch.bundle.manifest import Manifest
from chaffinch.bundle.state import State, check_counts, check_forms, check_numbers
from chaffinch.bundle.store import Bundle, building, find, list_packaged_models, load, read_manifest, save

__all__ = [
    "Bundle",
    "Manifest",
    "State",
    "building",
    "check_counts",
    "check_forms",
    "check_numbers",
    "find",
    "list_packaged_models",
    "load",
    "read_manifest",
    "save",
]  # fmt: skip

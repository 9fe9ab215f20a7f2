"""Loading of model files of every kind."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from chaffinch import bundle
from chaffinch.models import tagger

# The module and function that load each kind of file; imported when such a file is loaded. All other kinds are
# methods of taggers, which are in their registry.
LOADERS: dict[str, tuple[str, str]] = {
    "chmm": ("chaffinch.weak.aggregate", "load"),
    "deid": ("chaffinch.deid.detect.detector", "detector"),
    "multihmm": ("chaffinch.weak.aggregate", "load"),
    "relations": ("chaffinch.relations.storage", "load"),
    "weak": ("chaffinch.weak.tagger", "load"),
}


def load(path: str | Path) -> Any:
    """Return the packaged model of that name, else the model of the file; ModelError if there is none or it is damaged.

    It is a `Tagger`, a detector of identifiers ("deid-en"), a `weak.WeakTagger`, an aggregator of votes, or an
    extractor of relations, by the kind in the file's manifest. `chaffinch.weak.load` also takes the objects that a file
    of weak supervision cannot hold.

    >>> type(load("genia")).__name__, type(load("deid-en")).__name__
    ('Tagger', 'HybridDetector')
    """
    module, name = LOADERS.get(bundle.read_manifest(path).kind, (tagger.__name__, "load"))
    return getattr(import_module(module), name)(path)

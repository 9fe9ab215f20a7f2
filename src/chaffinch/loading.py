"""Models of every kind: one function that opens a model file, whatever is in it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from chaffinch import bundle
from chaffinch.models import tagger

# Who reads a file of a kind: a module and its function, imported when there is such a file. All other kinds are
# methods of taggers, which their registry knows.
LOADERS: dict[str, tuple[str, str]] = {
    "chmm": ("chaffinch.weak.aggregate", "load"),
    "deid": ("chaffinch.deid.detect.detector", "detector"),
    "multihmm": ("chaffinch.weak.aggregate", "load"),
    "relations": ("chaffinch.relations.storage", "load"),
    "weak": ("chaffinch.weak.tagger", "load"),
}


def load(path: str | Path) -> Any:
    """Return the model of a file, or of a packaged model's name.

    It is a `Tagger`, a detector of identifiers ("deid-en"), a `weak.WeakTagger`, an aggregator of votes, or an
    extractor of relations: what the file says that it is. `chaffinch.weak.load` also takes what a file of weak
    supervision could not hold.

    >>> type(load("genia")).__name__, type(load("deid-en")).__name__
    ('Tagger', 'HybridDetector')
    """
    module, name = LOADERS.get(bundle.read_manifest(path).kind, (tagger.__name__, "load"))
    return getattr(import_module(module), name)(path)

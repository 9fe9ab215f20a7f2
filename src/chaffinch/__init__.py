"""Hidden-Markov and structured sequence labelling for clinical and biomedical text, on CPUs, offline.

>>> import chaffinch as cf
>>> note = cf.Document.make("Seen by Dr. Penn.", layers={"gold": [cf.Span(12, 16, "DOCTOR")]})
>>> note.words()
['Seen', 'by', 'Dr.', 'Penn', '.']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chaffinch import threads

with threads.limit_blas():  # until numpy is loaded; the environment is then as it was
    import numpy as _numpy  # noqa: F401

from chaffinch import errors
from chaffinch.evaluate import compare, evaluate
from chaffinch.loading import load
from chaffinch.models.alignment.config import Alignment
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.classhmm.config import ClassHMM
from chaffinch.models.encoder.config import Encoder
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.phrasehmm.config import PhraseHMM
from chaffinch.models.tagger import Tagger, train
from chaffinch.models.votes.chmm.config import CHMM
from chaffinch.models.votes.multihmm.config import MultiHMM
from chaffinch.text import Corpus, Document, Relation, Soft, Span, resolve
from chaffinch.text.formats import read, write

if TYPE_CHECKING:
    from chaffinch import deid, relations, weak

__version__ = "0.1.0"

__all__ = [
    "CHMM",
    "HMMDP",
    "Alignment",
    "Cascade",
    "ClassHMM",
    "Corpus",
    "Document",
    "Encoder",
    "MultiHMM",
    "PhraseHMM",
    "Relation",
    "Soft",
    "Span",
    "Tagger",
    "compare",
    "deid",
    "errors",
    "evaluate",
    "load",
    "read",
    "relations",
    "resolve",
    "train",
    "weak",
    "write",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted([*__all__, "__all__", "__doc__", "__file__", "__name__", "__path__", "__version__"])


def __getattr__(name: str) -> Any:
    """The rooms of one user task each, loaded when they are asked for."""
    if name in ("deid", "relations", "weak"):
        return import_module(f"chaffinch.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

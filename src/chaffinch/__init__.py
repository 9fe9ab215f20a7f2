"""Hidden-Markov and structured sequence labelling for clinical and biomedical text, on CPUs, offline.

>>> import chaffinch as cf
>>> note = cf.Document.make("Seen by Dr. Penn.", layers={"gold": [cf.Span(12, 16, "DOCTOR")]})
>>> note.words()
['Seen', 'by', 'Dr.', 'Penn', '.']
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# One BLAS thread, unless you say otherwise or numpy is loaded already: the same numbers on any number of cores, and
# worker processes that do not fight for them.
for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from chaffinch import errors  # noqa: E402
from chaffinch.evaluate import compare, evaluate  # noqa: E402
from chaffinch.loading import load  # noqa: E402
from chaffinch.models.alignment.config import Alignment  # noqa: E402
from chaffinch.models.cascade.config import Cascade  # noqa: E402
from chaffinch.models.classhmm.config import ClassHMM  # noqa: E402
from chaffinch.models.encoder.config import Encoder  # noqa: E402
from chaffinch.models.hmmdp.config import HMMDP  # noqa: E402
from chaffinch.models.phrasehmm.config import PhraseHMM  # noqa: E402
from chaffinch.models.tagger import Tagger, train  # noqa: E402
from chaffinch.models.votes.chmm.config import CHMM  # noqa: E402
from chaffinch.models.votes.multihmm.config import MultiHMM  # noqa: E402
from chaffinch.text import Corpus, Document, Relation, Soft, Span, resolve  # noqa: E402
from chaffinch.text.formats import read, write  # noqa: E402

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


def __getattr__(name: str) -> Any:
    """The rooms of one user task each, loaded when they are asked for."""
    if name in ("deid", "relations", "weak"):
        return import_module(f"chaffinch.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

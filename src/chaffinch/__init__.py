"""Hidden-Markov and structured sequence labelling for clinical and biomedical text, on CPUs, offline.

>>> import chaffinch as cf
>>> note = cf.Document.make("Seen by Dr. Penn.", layers={"gold": [cf.Span(12, 16, "DOCTOR")]})
>>> note.words()
['Seen', 'by', 'Dr.', 'Penn', '.']
"""

from chaffinch import errors, kernels
from chaffinch.evaluate import compare, evaluate
from chaffinch.text import Argument, Corpus, Document, Relation, Soft, Span, resolve
from chaffinch.text.formats import Reading, read, write

__version__ = "0.1.0"

__all__ = [
    "Argument",
    "Corpus",
    "Document",
    "Reading",
    "Relation",
    "Soft",
    "Span",
    "compare",
    "errors",
    "evaluate",
    "kernels",
    "read",
    "resolve",
    "write",
]

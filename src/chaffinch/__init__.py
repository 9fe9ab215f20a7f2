"""Hidden-Markov and structured sequence labelling for clinical and biomedical text, on CPUs, offline.

>>> import chaffinch as cf
>>> note = cf.Document.make("Seen by Dr. Penn.", layers={"gold": [cf.Span(12, 16, "DOCTOR")]})
>>> note.words()
['Seen', 'by', 'Dr.', 'Penn', '.']
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from chaffinch import threads

if TYPE_CHECKING:
    from chaffinch import deid, errors, relations, weak
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

threads.limit_blas_with_numpy()

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


# Where public names are; they are loaded when they are asked for, so that `import chaffinch` and `--help` are quick.
_MODULES = {
    "Alignment": "models.alignment.config",
    "CHMM": "models.votes.chmm.config",
    "Cascade": "models.cascade.config",
    "ClassHMM": "models.classhmm.config",
    "Corpus": "text",
    "Document": "text",
    "Encoder": "models.encoder.config",
    "HMMDP": "models.hmmdp.config",
    "MultiHMM": "models.votes.multihmm.config",
    "PhraseHMM": "models.phrasehmm.config",
    "Relation": "text",
    "Soft": "text",
    "Span": "text",
    "Tagger": "models.tagger",
    "compare": "evaluate",
    "load": "loading",
    "read": "text.formats",
    "resolve": "text",
    "train": "models.tagger",
    "write": "text.formats",
}


def __getattr__(name: str) -> Any:
    """Return a public name or a module of this package, loaded when it is asked for; AttributeError if neither."""
    if name in _MODULES:
        value = globals()[name] = getattr(import_module(f"chaffinch.{_MODULES[name]}"), name)
        return value
    if name.startswith("_") or find_spec(f"chaffinch.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"chaffinch.{name}")


class _Package(ModuleType):
    """This package, in which `evaluate` is a function although a sub-package has the same name."""

    @property
    def evaluate(self) -> Any:
        """Return the function `evaluate`."""
        return import_module("chaffinch.evaluate").evaluate

    @evaluate.setter
    def evaluate(self, package: ModuleType) -> None:
        """Ignore the sub-package, which the import system assigns here when it is loaded."""


sys.modules[__name__].__class__ = _Package

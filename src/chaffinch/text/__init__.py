"""Documents, spans, tag schemes and formats; independent of models."""

from chaffinch.text.corpus import Corpus
from chaffinch.text.document import MAX_CHARS, Document, Soft
from chaffinch.text.span import OVERLAP_RULES, Argument, Relation, Span, resolve

__all__ = ["MAX_CHARS", "OVERLAP_RULES", "Argument", "Corpus", "Document", "Relation", "Soft", "Span", "resolve"]

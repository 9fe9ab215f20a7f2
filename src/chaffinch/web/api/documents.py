"""Documents of requests: made from JSON, with their limits, and spans back to JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

from chaffinch.errors import LimitError
from chaffinch.text import Document, Span
from chaffinch.web.api.types import EntityDocument, FoundSpan, InputDocument, InputSpan, VotedDocument
from chaffinch.web.problems import Problem
from chaffinch.web.settings import Limits

_numbers = count()  # of requests; documents of two requests that are run together have different ids


def check_sizes(documents: Sequence[InputDocument | VotedDocument | EntityDocument], limits: Limits) -> int:
    """Return the total characters; raise Problem for too many documents, LimitError if one is too long."""
    if len(documents) > limits.documents:
        message = f"{len(documents):,} documents; a request has at most {limits.documents:,}"
        raise Problem(413, "too_large", message)
    longest = max(len(each.text) for each in documents)
    if longest > limits.characters:
        raise LimitError(f"a document has {longest:,} characters, and the limit is {limits.characters:,}; cut it")
    return sum(len(each.text) for each in documents)


def make_documents(documents: Iterable[InputDocument]) -> list[Document]:
    """Return documents whose ids and patients carry a new request number, so that no other request has the same."""
    request = next(_numbers)
    made = []
    for number, each in enumerate(documents):
        group = None if each.patient is None else f"{request}:{each.patient}"
        made.append(Document.make(each.text, id=f"{request}-{number}", group=group))
    return made


def make_spans(spans: Iterable[InputSpan]) -> list[Span]:
    """Convert the spans of a request to Span values, with start, end and label."""
    return [Span(each.start, each.end, each.label) for each in spans]


def found_spans(spans: Iterable[Span]) -> list[FoundSpan]:
    """Convert Span values to the spans of an answer, with score and source."""
    return [
        FoundSpan(start=each.start, end=each.end, label=each.label, score=float(each.score), source=each.source)
        for each in spans
    ]

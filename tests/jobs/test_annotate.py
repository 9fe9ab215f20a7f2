"""Documents that go through several processes come back in order, as from one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from chaffinch.errors import ChaffinchError
from chaffinch.jobs import annotate
from chaffinch.jobs.annotate import Annotate, annotate_documents
from chaffinch.text import Document, Span

DOCUMENTS = [Document.make(f"Dr. Penn saw {'them and ' * (number % 7)}Wren.", id=str(number)) for number in range(40)]


@dataclass(frozen=True, slots=True)
class MarkFirst:
    """Mark the first word of each document; end the process at the id `fatal`."""

    fatal: str = ""

    def build(self) -> Annotate:
        """Return the function of this process."""

        def mark(docs: Sequence[Document]) -> Iterator[Document]:
            for doc in docs:
                if doc.id == self.fatal:
                    os._exit(9)
                yield doc.with_layer("first", [Span(0, int(doc.tokens[0][1]), f"N{len(doc.tokens)}")])

        return mark


def test_any_number_of_processes_gives_the_same_documents_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotate, "_BATCH_TOKENS", 20)
    one, two = (list(annotate_documents(DOCUMENTS, MarkFirst(), workers)) for workers in (1, 2))
    assert one == two
    assert [doc.id for doc in two] == [doc.id for doc in DOCUMENTS]
    assert all(doc.layer("first")[0].end == 3 for doc in two)


def test_a_process_that_ends_is_an_error_with_advice() -> None:
    with pytest.raises(ChaffinchError, match="use fewer workers"):
        list(annotate_documents(DOCUMENTS, MarkFirst(fatal="7"), 2))

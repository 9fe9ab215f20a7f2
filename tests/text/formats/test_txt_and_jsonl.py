"""Plain text and our own JSONL."""

from __future__ import annotations

from hypothesis import given

from chaffinch.text import Document
from tests.text.formats.roundtrip import assert_kept, assert_kept_or_reported
from tests.text.strategies import corpora, documents


@given(corpora(documents))
def test_plain_text_keeps_or_reports(docs: list[Document]) -> None:
    if docs:
        assert_kept_or_reported(docs, "txt")


@given(corpora(documents))
def test_jsonl_keeps_everything(docs: list[Document]) -> None:
    assert_kept(docs, "jsonl")

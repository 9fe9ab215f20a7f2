"""A corpus in memory has a length and documents by number; one that is read from files says how to get them."""

from __future__ import annotations

from pathlib import Path

import pytest

import chaffinch as cf
from chaffinch.text import Corpus, Document

DOCS = [Document.make(text, id=text) for text in ("One.", "Two.", "Three.")]


def test_a_corpus_in_memory_has_length_and_index() -> None:
    corpus = Corpus.of(DOCS)
    assert len(corpus) == 3
    assert corpus[0] is DOCS[0]
    assert corpus[-1] is DOCS[-1]
    assert [doc.id for doc in corpus[1:]] == ["Two.", "Three."]
    assert isinstance(corpus[1:], Corpus)
    assert len(corpus[1:]) == 2
    assert bool(corpus)
    assert not Corpus.of([])
    with pytest.raises(IndexError):
        corpus[3]


def test_a_corpus_of_files_says_how_to_get_them(tmp_path: Path) -> None:
    cf.write(DOCS, tmp_path / "a.jsonl")
    corpus = cf.read(tmp_path / "a.jsonl")
    for attempt in (lambda: len(corpus), lambda: corpus[0]):
        with pytest.raises(TypeError, match=r"load\(\)"):
            attempt()
    assert len(list(corpus)) == 3  # list() asks for the length first
    assert bool(corpus)
    assert len(corpus.load()) == 3
    assert corpus.load().format == "jsonl"


def test_a_mapped_corpus_in_memory_has_a_length() -> None:
    assert len(Corpus.of(DOCS).map(lambda doc: doc)) == 3

"""Token and tag lists of Hugging Face datasets."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from chaffinch.text import Document, Span
from chaffinch.text.formats import ReadOptions, read, write
from tests.text.formats.refusal import CANARY, assert_refused
from tests.text.formats.roundtrip import assert_kept, assert_kept_or_reported, through
from tests.text.formats.tokenised import enriched_documents, token_documents
from tests.text.strategies import corpora, documents

NAMES = ("O", "B-DNA", "I-DNA")
GOLDEN = '{"id":"7","tokens":["IL-2","gene","x y"],"ner_tags":[1,2,0],"pos_tags":[22,21,4]}\n{"tokens":[],"tags":[]}\n'


@given(corpora(documents))
def test_any_document_is_kept_or_its_losses_are_reported(docs: list[Document]) -> None:
    assert_kept_or_reported(docs, "hf")
    back, _ = through(docs, "hf")
    assert [(doc.id, doc.group, doc.words()) for doc in back] == [(doc.id, doc.group, doc.words()) for doc in docs]


@given(corpora(token_documents, columns=1))
def test_documents_of_tokens_are_kept(docs: list[Document]) -> None:
    assert_kept(docs, "hf")


@given(enriched_documents())
def test_whatever_tags_cannot_say_is_reported(doc: Document) -> None:
    assert_kept_or_reported([doc], "hf")


def test_integer_tags_are_read_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(GOLDEN)
    first, second = read(path, how=ReadOptions(tag_names=NAMES))
    assert (first.id, first.text, first.layer()) == ("7", "IL-2 gene x y", (Span(0, 9, "DNA"),))
    assert first.words() == ["IL-2", "gene", "x y"]
    assert first.meta == {"pos_tags": [22, 21, 4]}
    assert (second.id, second.text, second.layer()) == ("1", "", ())
    assert not write([first], tmp_path / "out", format="hf")
    expected = b'{"id":"7","tokens":["IL-2","gene","x y"],"ner_tags":["B-DNA","I-DNA","O"],"pos_tags":[22,21,4]}\n'
    assert (tmp_path / "out").read_bytes() == expected


@pytest.mark.parametrize(
    ("content", "says", "names"),
    [
        (f'{{"tokens":["{CANARY}"],"ner_tags":[1]}}', "--tag-names O,B-X", ()),
        (f'{{"tokens":["{CANARY}"],"ner_tags":[3]}}', "tag 0", NAMES),
        (f'{{"tokens":["{CANARY}"],"ner_tags":[-1]}}', "tag 0", NAMES),
        (f'{{"tokens":["{CANARY}"],"ner_tags":["{CANARY}"]}}', "is not O", ()),
        (f'{{"tokens":["{CANARY}"],"ner_tags":["O","O"]}}', "2 tags", ()),
        (f'{{"tokens":["{CANARY}",7],"ner_tags":["O","O"]}}', "Expected `str`", ()),
        (f'{{"tokens":["{CANARY}"],"ner_tags":[["O"]]}}', "Expected", ()),
        (f'{{"tokens":["{CANARY}"],"sentences":[2]}}', "sentences", ()),
        (f'{{"words":["{CANARY}"]}}', 'no "tokens"', ()),
        (f'["{CANARY}"]', "not an object", ()),
        (f'{{"tokens":["{CANARY}"', "not valid JSON", ()),
        (f'{{"tokens":["{CANARY}"],"group":["{CANARY}"]}}', '"group"', ()),
    ],
)
def test_bad_records_are_refused_with_their_place(content: str, says: str, names: tuple[str, ...]) -> None:
    assert_refused('{"tokens":[]}\n' + content + "\n", "hf", says, line=2, how=ReadOptions(tag_names=names))

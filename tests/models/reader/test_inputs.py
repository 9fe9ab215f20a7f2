"""What stands beside word pieces, the piece of a token, and windows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chaffinch.models.reader.inputs import Inputs, windows_of
from chaffinch.models.reader.wordpieces import Vocabulary
from chaffinch.text import Document
from tests.models.notes import TINY

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,-"
VOCABULARY = Vocabulary.of(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS, *(f"##{sign}" for sign in LETTERS)])


def test_shapes_gaps_and_lengths_worked_by_hand() -> None:  # one tab is a blank
    seen = Inputs.of(Document.make("Ab CD\n\nx   7\t9a, eFg Q"), VOCABULARY)
    words = [0, 0, 1, 1, 2, 3, 4, 4, 5, 6, 6, 6, 7]
    assert seen.columns[1].tolist() == [[2, 3, 1, 6, 7, 0, 5, 4][word] for word in words]
    assert seen.columns[2].tolist() == [4, 0, 2, 0, 5, 3, 2, 0, 1, 2, 0, 0, 2]
    assert seen.columns[3].tolist() == [[2, 2, 1, 1, 2, 1, 3, 1][word] for word in words]


def test_a_token_has_the_first_piece_that_it_shares_a_character_with() -> None:
    doc = Document.make("12th \u200b ab", tokens=[(0, 2), (2, 4), (5, 6), (7, 9)])
    whole = Vocabulary.of(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "12th", "ab"])
    assert Inputs.of(doc, whole).firsts.tolist() == [0, 0, -1, 1]
    assert Inputs.of(doc, VOCABULARY).firsts.tolist() == [0, 2, -1, 4]


def test_documents_with_next_to_nothing_in_them() -> None:
    for doc in TINY:
        seen = Inputs.of(doc, VOCABULARY)
        assert len(seen.firsts) == len(doc.tokens)
        assert seen.columns.shape == (4, len(seen))
        assert (seen.firsts < len(seen)).all()


@given(st.integers(0, 3000), st.integers(4, 260), st.integers(0, 130))
def test_windows_hold_every_piece_once_and_far_from_edges(pieces: int, most: int, overlap: int) -> None:
    overlap = min(overlap, most // 2)
    found = windows_of(pieces, most, overlap)
    assert [place for own in found for place in range(own.own_first, own.own_end)] == list(range(pieces))
    for number, own in enumerate(found):
        assert own.end - own.first <= most
        assert own.first <= own.own_first <= own.own_end <= own.end
        if number:  # what is read here is at least half of the overlap away from the edge
            assert own.own_first - own.first >= overlap // 2 - 1
        if number + 1 < len(found):
            assert own.end - own.own_end >= overlap // 2 - 1
            assert own.end - found[number + 1].first >= overlap

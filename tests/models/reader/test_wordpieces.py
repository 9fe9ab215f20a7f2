"""Word pieces against the tokenizers library, and cases worked by hand."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import ModelError
from chaffinch.features import embed
from chaffinch.models.reader.wordpieces import Vocabulary, split_words
from tests.features import tiny_encoder

# Signs of Unicode 1.1 to 9: later ones are of other categories in the tokenizers library's tables.
_RANGES = ((0, 0x250), (0x370, 0x400), (0x410, 0x430), (0x5D0, 0x5EB), (0x1E00, 0x2100), (0x2190, 0x2200))
_OTHERS = "一東豈\U0002f800가ﬁ\ufeff\ufffd😀\u3000"
_OLD = [
    chr(code) for low, high in _RANGES for code in range(low, high) if unicodedata.category(chr(code)) != "Cn"
] + list(_OTHERS)
TEXTS = st.text(st.one_of(st.sampled_from("abcdr.  \n-19"), st.sampled_from(_OLD)), max_size=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder.make(tmp_path_factory.mktemp("encoder"))


def vocabulary_of(folder: Path) -> Vocabulary:
    return Vocabulary.of((folder / "vocab.txt").read_text(encoding="utf-8").rstrip("\n").split("\n"))


def test_pieces_and_offsets_are_those_of_the_tokenizers_library(folder: Path) -> None:
    vocabulary, tokenizer = vocabulary_of(folder), embed.load_encoder(folder).tokenizer

    @given(TEXTS)
    def check(text: str) -> None:
        theirs, ours = tokenizer.encode(text, add_special_tokens=False), vocabulary.cut(text)
        assert ours.ids.tolist() == theirs.ids
        assert list(zip(ours.starts.tolist(), ours.ends.tolist(), strict=True)) == theirs.offsets

    check()


def test_the_packaged_vocabulary_cuts_clinical_text_as_the_tokenizers_library_does() -> None:
    pretrained = embed.load_encoder(None)
    vocabulary = vocabulary_of(embed.find(None))
    text = "Pt. O'Néill-Żak (MRN 00-48-213) T 38.5°C, SpO₂ 97%\r\n\tDr. MÜLLER 5µg → ½ tab; œdème 東京 \u200bK\u0301ate"
    theirs, ours = pretrained.tokenizer.encode(text, add_special_tokens=False), vocabulary.cut(text)
    assert ours.ids.tolist() == theirs.ids
    assert list(zip(ours.starts.tolist(), ours.ends.tolist(), strict=True)) == theirs.offsets


@given(st.text(max_size=80))
def test_every_piece_lies_in_the_text_and_comes_after_the_one_before(text: str) -> None:
    vocabulary = Vocabulary.of(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefgh", *(f"##{sign}" for sign in "abcdefgh")])
    found = vocabulary.cut(text)
    assert (found.starts < found.ends).all()
    assert len(found) == 0 or (found.starts[0] >= 0 and found.ends[-1] <= len(text))
    assert (found.starts[1:] >= found.starts[:-1]).all()
    assert (found.words[1:] - found.words[:-1] <= 1).all()


def test_words_worked_by_hand() -> None:
    assert [word.letters for word in split_words("Dr. O'Brien\u00a0(ß) 12/5 a\u0000b")] == [
        "dr", ".", "o", "'", "brien", "(", "ß", ")", "12", "/", "5", "ab",
    ]  # fmt: skip
    (word,) = split_words("  \u1e9b\u0323x")  # two letters of one character each, one of which loses two accents
    assert list(word.places) == [2, 4]


def test_a_word_that_cannot_be_spelt_or_is_too_long_is_one_unknown_piece() -> None:
    vocabulary = Vocabulary.of(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##a"])
    found = vocabulary.cut("aab " + "a" * 101 + " aa")
    assert found.ids.tolist() == [1, 1, 4, 5]
    assert found.ends.tolist() == [3, 105, 107, 108]


def test_a_vocabulary_without_special_pieces_is_refused() -> None:
    with pytest.raises(ModelError, match=r"\[CLS\]"):
        Vocabulary.of(["[PAD]", "[UNK]", "[SEP]", "a"])

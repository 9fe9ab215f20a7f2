"""Membership of words in the lists of a language."""

from __future__ import annotations

import pytest

from chaffinch import languages
from chaffinch.features.word_lists import WordListFeature, word_profile
from chaffinch.models.core.resources import Resources
from chaffinch.text import Document


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("Smith", "Title last-hi city-hi"),
        ("SMITH", "CAPITALS last-hi city-hi"),
        ("walk", "small common"),
        ("welder", "small common job-hi"),
        ("Okonkwo", "Title new"),
        ("Smith-Okonkwo", "Title parts city-hi last-hi new"),
        ("eGFR", "mixed common"),
    ],
)
def test_a_word_is_told_by_how_it_is_written_and_by_its_lists(word: str, told: str) -> None:
    assert word_profile(word, languages.pack("en")) == told


def test_marks_are_numbers_of_words_with_letters_and_follow_the_lists_without_hidden_words() -> None:
    lists, doc = WordListFeature("en"), Document.make("Smith saw Smith on 3/4, again")
    (marks,) = lists.marks([doc])
    assert marks[0] == marks[2] != marks[1]
    assert [bool(mark) for mark in marks] == [any(map(str.isalpha, word)) for word in doc.words()]
    (fewer,) = WordListFeature("en", languages.hidden_words(["Smith"])).marks([doc])
    assert fewer[0] != marks[0]
    assert fewer[1] == marks[1]
    (again,) = lists.marks([doc])
    assert again.tolist() == marks.tolist()


def test_a_model_file_holds_the_language_and_no_list() -> None:
    state = Resources(standing=WordListFeature("es")).state()
    assert not state.arrays
    assert state.strings == {"standing": ("es",)}
    found = Resources.of(state).standing
    assert found is not None
    assert found.language == "es"

"""The recipe of the word lists: which words are common."""

from __future__ import annotations

from recipes.languages import MIN_DOCUMENTS, Language

from chaffinch import Document, Span


def language(*, capitals: bool) -> Language:
    own = Language(capitals=capitals)
    text = "James saw Grant, who got a grant. Boston was cold; Then it was not, then it was."
    gold = [Span(0, 5, "PATIENT")]
    docs = [Document.make(text, layers={"gold": gold if number else []}) for number in range(MIN_DOCUMENTS + 1)]
    own.add("general", docs)
    own.add("rare", [Document.make("Zebra zebra")])
    return own


def words(own: Language) -> set[str]:
    return {row.split("\t")[0] for row in own.common({"james", "grant", "boston"})}


def test_a_name_that_nobody_writes_in_small_letters_is_no_common_word() -> None:
    found = words(language(capitals=True))
    assert {"grant", "saw", "then"} <= found
    assert not {"james", "boston"} & found


def test_where_other_words_have_capitals_too_names_are_counted_like_them() -> None:
    assert {"james", "boston", "grant"} <= words(language(capitals=False))


def test_a_word_of_few_documents_is_not_common() -> None:
    assert "zebra" not in words(language(capitals=True))


def test_marked_words_are_not_counted() -> None:
    own = Language()
    own.add("notes", [Document.make("James slept", layers={"gold": [Span(0, 5, "PATIENT")]})], "gold")
    assert own.documents == {"slept": 1}

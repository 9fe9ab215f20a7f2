"""Symbols of tokens: which words become symbols, what replaces the others, flags, privacy, saving and loading."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch import languages
from chaffinch.features import observe as window
from chaffinch.features import signatures as oov
from chaffinch.features import symbols
from chaffinch.features.observe import Keys
from chaffinch.features.symbols import KINDS, SIGNATURE, TIMES, WORD, Symbols
from chaffinch.text import Document

EN = oov.pack("en")
SUFFIX_2, SUFFIX_3, PREFIX_3 = 3, 4, 5


def learn(
    texts: Sequence[str], *, patients: Sequence[int] | None = None, min_count: int = 1, min_groups: int = 1,
    hidden: Sequence[str] = (),
) -> Symbols:  # fmt: skip
    """The symbols of texts; `hidden` are the words inside spans, as "Penn" everywhere or "Penn:2" in two places."""
    docs = [Document.make(text) for text in texts]
    seen = window.observe(docs)
    left = {entry.partition(":")[0]: int(entry.partition(":")[2] or 10**9) for entry in hidden}
    inside = np.zeros(len(seen.types), np.bool_)
    for place, word in zip(seen.places.tolist(), [word for doc in docs for word in doc.words()], strict=True):
        inside[place] = left.get(word, 0) > 0
        left[word] = left.get(word, 0) - 1
    numbers = np.arange(len(texts)) if patients is None else np.array(patients)
    return symbols.learn(
        seen, "en", patients=numbers, min_count=min_count, min_groups=min_groups, hidden=inside if hidden else None
    )


def of(learnt: Symbols, text: str) -> symbols.Ints:
    return learnt(window.observe([Document.make(text)]))


def keys_of(word: str) -> Keys:
    """(F,) the key of each kind of a word, as a model that learnt from it alone has it."""
    found = learn([word])
    return np.array([keys[0] if len(keys) else 0 for keys in found.keys], np.uint64)


def test_a_word_needs_enough_tokens() -> None:
    learnt = learn(["fever fever fever", "cough cough fever"], min_count=3)
    assert learnt.words == ("fever",)
    assert learn(["fever fever fever", "cough cough fever"], min_count=2).words in (
        ("fever", "cough"),
        ("cough", "fever"),
    )


def test_a_word_needs_enough_patients_not_documents() -> None:
    texts = ["fever cough", "fever cough", "fever rash"]
    assert learn(texts, min_groups=2, patients=[0, 0, 1]).words == ("fever",)
    assert set(learn(texts, min_groups=2).words) == {"fever", "cough"}
    assert learn(texts, min_groups=3).words == ("fever",)


def test_the_same_floors_hold_for_affixes() -> None:
    learnt = learn(["fever clever", "sever"], min_groups=2)
    for kind, mine, others in ((SUFFIX_2, "fever", "cough"), (SUFFIX_3, "fever", "cough")):
        assert keys_of(mine)[kind] in learnt.keys[kind]
        assert keys_of(others)[kind] not in learnt.keys[kind]
    assert learnt.words == ()
    assert keys_of("fever")[PREFIX_3] not in learnt.keys[PREFIX_3]


def test_a_word_mostly_inside_spans_is_no_symbol_nor_are_its_letters() -> None:
    texts = ["Penn came home", "Penn came", "Penn rests"]
    open_, private = learn(texts), learn(texts, hidden=["Penn"])
    assert "Penn" in open_.words
    assert "Penn" not in private.words
    assert {"came", "home", "rests"} <= set(private.words)
    for kind in (WORD, SUFFIX_2, SUFFIX_3, PREFIX_3):
        assert keys_of("Penn")[kind] in open_.keys[kind]
        assert keys_of("Penn")[kind] not in private.keys[kind]
    for strings in private.arrays()[1].values():
        assert not any("Penn" in string for string in strings)
    found = of(private, "Penn came")
    assert found[0, [WORD, SUFFIX_2, SUFFIX_3, PREFIX_3]].tolist() == [0, 0, 0, 0]
    assert found[0, SIGNATURE] > 0  # what stands in for it
    assert found[1, WORD] > 0


@pytest.mark.parametrize(("inside", "known"), [("Reading:2", True), ("Reading:3", False)])
def test_half_inside_is_not_mostly(inside: str, known: bool) -> None:
    learnt = learn(["Reading books", "Reading a", "Reading b", "Reading c"], hidden=[inside])
    assert ("Reading" in learnt.words) == known


def test_affixes_of_a_hidden_word_stay_if_open_words_have_them() -> None:
    learnt = learn(["Penny pays", "Penn sees Penny"], hidden=["Penn"])
    assert "Penn" not in learnt.words
    assert keys_of("Penn")[PREFIX_3] in learnt.keys[PREFIX_3]  # of Penny
    assert keys_of("Penn")[SUFFIX_3] not in learnt.keys[SUFFIX_3]


def test_words_are_at_the_places_of_their_keys() -> None:
    learnt = learn(["the fever rose , the cough went .", "The rash"])
    assert set(learnt.words) == {"the", "fever", "rose", ",", "cough", "went", ".", "The", "rash"}
    for place, word in enumerate(learnt.words, start=1):
        assert of(learnt, word)[0, WORD] == place
    assert learnt.sizes == tuple(
        1 + len(keys) if k != SIGNATURE else 1 + len(learnt.signatures) for k, keys in enumerate(learnt.keys)
    )


def test_an_unseen_word_has_its_signature_or_what_it_backs_off_to() -> None:
    learnt = learn(["Smith saw her", "Jones saw him", "on 12/03/1998 and 11/02/1997 and 10/04/1996"])
    for word in ("Brown", "Zyxgov", "05/06/1987", "05/06"):
        found = of(learnt, word)[0]
        assert found[WORD] == 0
        whole = oov.add_flags(oov.signature(word, EN), oov.FLAGS["line"])
        chain = [step for step in oov.back_off(whole) if step in learnt.signatures]
        assert learnt.signatures[found[SIGNATURE] - 1] == chain[0]  # the longest that is known
    assert of(learnt, "05/06/1987")[0, SIGNATURE] == of(learnt, "12/03/1998")[0, SIGNATURE]


def test_every_category_is_known_so_that_backing_off_ends() -> None:
    learnt = learn(["fever"])
    assert {f"{oov.MARK}{name}" for name in oov.CATEGORIES} <= set(learnt.signatures)
    assert all(oov.is_symbol(name) for name in learnt.signatures)
    for word in ("37947241ZGJ", "x@y.org", "§§", "40%", "555-1234", "12/03"):
        found = of(learnt, word)[0, SIGNATURE]
        assert learnt.signatures[found - 1] == f"{oov.MARK}{oov.category(word, EN)}"  # no longer signature was seen


def test_rare_signatures_count_as_what_they_back_off_to() -> None:
    often = learn(["1.5 2.5 3.5"])
    rare = learn(["1.5 2.5"])
    whole = oov.signature("1.5", EN)
    assert TIMES == 3
    assert whole in often.signatures
    assert whole not in rare.signatures
    assert of(rare, "1.5")[0, SIGNATURE] > 0


def test_flags_of_lines_and_ages() -> None:
    doc = Document.make("Ann is 40 years\nBo is 7 yo , 3 mg\n\nand 9")
    seen = window.observe([doc])
    flags = dict(zip(doc.words(), symbols.flags(seen, EN).tolist(), strict=True))
    assert [word for word, flag in flags.items() if flag & oov.FLAGS["line"]] == ["Ann", "Bo", "and"]
    assert [word for word, flag in flags.items() if flag & oov.FLAGS["age"]] == ["40", "7"]


def test_flags_are_part_of_signatures_where_they_can_be() -> None:
    learnt = learn(["Bo is 40 years", "Bo is 41 years", "Bo is 42 years", "so 43 mg Bo", "so 44 mg Bo", "so 45 mg Bo"])
    aged, plain = of(learnt, "so 47 years")[1, SIGNATURE], of(learnt, "so 47 mg")[1, SIGNATURE]
    assert learnt.signatures[aged - 1].endswith("|age=1")
    assert learnt.signatures[plain - 1] + "|age=1" == learnt.signatures[aged - 1]
    first, later = of(learnt, "Bo Bo")[:, SIGNATURE]
    assert "line=1" in learnt.signatures[first - 1]
    assert "line=1" not in learnt.signatures[later - 1]


def test_an_age_word_in_the_next_sentence_or_document_is_no_age() -> None:
    doc = Document.make("a 40 years b", tokens=[(0, 1), (2, 4), (5, 10), (11, 12)], sentences=[(0, 4), (5, 12)])
    assert symbols.flags(window.observe([doc]), EN).tolist() == [1, 0, 0, 0]
    two = [Document.make("about 40"), Document.make("years ago")]
    assert symbols.flags(window.observe(two), EN).tolist() == [1, 0, 1, 0]


def test_arrays_give_the_same_symbols_back() -> None:
    learnt = learn(["Smith saw her on 12/03/1998", "Jones saw him"], min_groups=2)
    arrays, strings = learnt.arrays()
    again = Symbols.of("en", arrays, strings)
    assert (again.words, again.signatures, again.sizes) == (learnt.words, learnt.signatures, learnt.sizes)
    for text in ("Smith saw Zyxgov", "", "12/03/1998 ago"):
        assert np.array_equal(of(learnt, text), of(again, text))


def test_symbols_of_a_file_are_saved_again_as_they_were() -> None:
    """Signatures are shortened in the order they were learnt in, whatever the order of a later version."""
    learnt = learn(["Smith saw her", "Jones saw him"])
    older = replace(learnt, order=learnt.order[::-1])
    again = Symbols.of("en", *older.arrays())
    assert again.order == older.order
    assert np.array_equal(of(again, "Zyxgov Brown-Hale 05/06"), of(older, "Zyxgov Brown-Hale 05/06"))


def test_word_lists_that_do_not_come_with_chaffinch_travel_with_the_model(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(Path(languages.__file__).parent / "es", folder)
    with (folder / "lexicon-city.txt").open("a", encoding="utf-8") as file:
        file.write("zyxgov\thi\n")
    texts = ["Zyxgov está lejos", "Zyxgov y Qoph", "Zyxgov en enero de 1998"]
    seen = window.observe([Document.make(text) for text in texts])
    learnt = symbols.learn(seen, str(folder), patients=np.arange(3), min_count=9, min_groups=1)
    assert any("city=hi" in signature for signature in learnt.signatures)
    arrays, strings = learnt.arrays()
    shutil.rmtree(folder)
    again = Symbols.of(str(folder), arrays, strings)
    for text in texts:
        assert np.array_equal(of(learnt, text), of(again, text))
    assert again.arrays()[1] == strings
    assert not any(name.startswith("pack.") for name in learn(texts).arrays()[1])  # those that come with it stay here


TEXTS = st.text(st.sampled_from("ab Z9\n.-/é"), max_size=20)


@given(st.lists(TEXTS, min_size=1, max_size=4))
@settings(max_examples=50)
def test_a_text_has_the_same_symbols_alone_and_among_others(texts: list[str]) -> None:
    learnt = learn(["ab Z9 a.b 9-9", "ab é Zb 9/9", "a Z9\nb"])
    docs = [Document.make(text) for text in texts]
    together = learnt(window.observe(docs))
    assert together.shape == (sum(len(doc.tokens) for doc in docs), len(KINDS))
    alone = [learnt(window.observe([doc])) for doc in docs]
    assert np.array_equal(together, np.concatenate(alone))
    fresh = Symbols.of("en", *learnt.arrays())  # without a memo of words met before
    assert np.array_equal(together, fresh(window.observe(docs)))


def test_signatures_of_words_met_are_remembered_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbols, "MEMO", 2)
    learnt = learn(["fever"])
    before = of(learnt, "Ann Bo Carl Dora")
    assert len(learnt.memo) == 2
    assert np.array_equal(of(learnt, "Ann Bo Carl Dora"), before)

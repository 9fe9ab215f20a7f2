"""Lists, admission files, repeats, custom types and releases read notes through their views."""

from __future__ import annotations

import pytest

from chaffinch.deid.detect.admission import KnownIdentifiers
from chaffinch.deid.detect.detector import HybridDetector, detector
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.replace import originals, replace_identifiers, undo
from chaffinch.text import Document, Span
from chaffinch.weak.sources import Regex
from tests.deid.releases import SECRET

HIDDEN = [
    "Project\u00a0Wren",
    "Pro\u00adject W\u200bren",
    "Project  Wren",
    "Project\tWren",
    "P r o j e c t  W r e n",
    "Ｐｒｏｊｅｃｔ　Ｗｒｅｎ",
]


def marked(find: HybridDetector, text: str, group: str | None = None) -> list[str]:
    (doc,) = find([Document.make(text, group=group)])
    return [doc.text[span.start : span.end] for span in doc.layer("deid")]


@pytest.mark.parametrize("phrase", HIDDEN)
def test_a_phrase_of_the_deny_list_is_found_in_any_characters(phrase: str) -> None:
    assert marked(detector(deny=["project wren"]), f"part of {phrase}, stable") == [phrase]
    assert marked(detector(deny=[phrase]), "part of Project Wren, stable") == ["Project Wren"]


@pytest.mark.parametrize(
    "name", ["Dr. Oko\u00adnkwo", "Dr. O\u200bk\u200bo\u200bn\u200bk\u200bw\u200bo", "Dr.\u00a0Okonkwo", "Dr.  Okonkwo"]
)
def test_a_phrase_of_the_allow_list_is_allowed_in_any_characters(name: str) -> None:
    assert marked(detector(), f"Seen by {name} here.")
    assert not marked(detector(allow=["Dr. Okonkwo"]), f"Seen by {name} here.")


@pytest.mark.parametrize(
    "name", ["wendell  ash", "W\u200bendell\u00a0Ash", "Wen\u00addell Ash", "W e n d e l l  A s h", "WEN\x00DELL ASH"]
)
def test_a_known_identifier_is_found_in_any_characters(name: str) -> None:
    known = KnownIdentifiers.of([{"patient": "p1", "name": "Wendell Ash"}])
    assert "".join(marked(detector(known=known), f"he, {name}, slept", "p1")).endswith(name[-3:])
    hidden = KnownIdentifiers.of([{"patient": "p1", "name": name}])
    assert marked(detector(known=hidden), "he, Wendell Ash, slept", "p1") == ["Wendell Ash"]


def test_a_name_of_one_note_is_found_in_other_characters_in_another() -> None:
    docs = [
        Document.make("Seen by Dr. Okonkwo.", id="a", group="p"),
        Document.make("Plan: O\u200bko\u00adnkwo agrees.", id="b", group="p"),
    ]
    _, second = detector(by_patient=True)(docs)
    assert [second.text[span.start : span.end] for span in second.layer("deid")] == ["O\u200bko\u00adnkwo"]


def test_a_custom_type_reads_the_view() -> None:
    find = detector(types=[Regex("ward", r"Ward \d+", label="DEPARTMENT")])
    assert marked(find, "on Wa\u00adrd\u00a0１２ today") == ["Wa\u00adrd\u00a0１２"]


def test_a_plain_note_keeps_its_objects_and_a_hidden_one_its_layers() -> None:
    plain = Document.make("Dr. Penn.", layers={"gold": [Span(4, 8, "DOCTOR")]})
    hidden = Document.make("Dr. P\u00adenn.", layers={"gold": [Span(4, 9, "DOCTOR")]})
    for doc in (plain, hidden):
        (read,) = detector()([doc])
        assert read.text is doc.text
        assert read.tokens is doc.tokens
        assert read.layers["gold"] == doc.layers["gold"]
        assert [(span.start, span.end) for span in read.layer("deid")] == [(4, len(doc.text) - 1)]


def replaced(text: str, policy: str) -> str:
    (doc,) = detector()([Document.make(text, group="p")])
    out = replace_identifiers(doc, "deid", Policy.read(policy), SECRET)
    assert undo(originals(text, out), out) == text
    return out.text


@pytest.mark.parametrize(
    "text",
    ["seen on 0\u200b3/14/19\u00ad98 here", "seen on ０３/１４/１９９８ here", "seen on 0 3 / 1 4 / 1 9 9 8 here"],
)
def test_a_date_is_shifted_and_rounded_as_it_was_read(text: str) -> None:
    plain = "seen on 03/14/1998 here"
    assert replaced(text, "i2b2-surrogate") == replaced(plain, "i2b2-surrogate") != plain
    assert replaced(text, "safe-harbor") == "seen on 1998 here"


def test_an_age_over_the_limit_is_rounded_whatever_is_inside_it() -> None:
    assert replaced("He is a 9\u200b5-year-old man.", "safe-harbor") == "He is a 90+-year-old man."
    assert replaced("DOB: 03/14/19\u200b05, seen 5/6/2015", "i2b2-surrogate").startswith("DOB: [DATE]")


def test_a_name_has_one_surrogate_in_all_characters_and_what_is_kept_stays_as_it_is() -> None:
    first, second = replaced("Dr. Okonkwo. Dr. Oko\u00adnkwo.", "i2b2-surrogate").split(". Dr. ")
    assert first.removeprefix("Dr. ") == second.removesuffix(".") != "Okonkwo"
    assert replaced("Seen ０３/１４/１９９８.", "limited-dataset") == "Seen ０３/１４/１９９８."

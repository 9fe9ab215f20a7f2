"""Names: forms of one name agree, initials agree with names, families share surnames, form and gender are kept."""

from __future__ import annotations

import hashlib
import re
import string
import unicodedata
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.surrogates.letters import letter_map
from chaffinch.deid.surrogates.lists import entries, names
from chaffinch.deid.surrogates.names import AFTER, AFTER_COMMA, LOWER_PARTICLES, PARTICLES, PREFIXES, TITLES
from chaffinch.deid.surrogates.surrogate import surrogate
from tests.deid.releases import SECRET

FEMALE = [name for name in entries("names-first-female")[:300] if len(name) > 1]
MALE = list(entries("names-first-male")[:200])
LAST = [name for name in entries("names-last")[:2000] if name.isalpha() and len(name) > 3]
GIVEN = sorted({*FEMALE, *MALE})
PATIENTS = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=5)


def drawn(text: str, patient: str = "p1", secret: Secret = SECRET, label: str = "PATIENT") -> str:
    return surrogate(text, kind_of(label), patient, secret)


def words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text)


@given(PATIENTS, st.binary(max_size=8))
@settings(max_examples=500)
def test_letters_are_permuted(patient: str, key: bytes) -> None:
    found = letter_map(Secret(hashlib.sha256(key).digest()), patient)
    assert sorted(found) == list(string.ascii_lowercase) == sorted(found.values())


@pytest.mark.parametrize("letter", ["a", "j", "z"])
def test_every_letter_is_as_likely(letter: str) -> None:
    counts = Counter(letter_map(SECRET, f"p{number}")[letter] for number in range(5200))
    assert len(counts) == 26
    assert sum((count - 200) ** 2 / 200 for count in counts.values()) < 53  # chi-square, 25 degrees: 1 in 1000


@given(st.sampled_from(GIVEN), st.sampled_from(GIVEN), st.sampled_from(LAST), PATIENTS)
@settings(max_examples=500)
def test_all_forms_of_a_name_agree_word_by_word(first: str, middle: str, last: str, patient: str) -> None:
    assume(len({first, middle, last}) == 3)
    whole = words(drawn(f"{first} {middle} {last}", patient))
    assume(not {word.lower() for word in whole} & {first.lower(), middle.lower(), last.lower()})
    f, m, l = whole  # noqa: E741 - as in the forms
    singles = [drawn(name, patient) for name in (first, middle, last)]
    assume(not {single.lower() for single in singles} & {first.lower(), middle.lower(), last.lower()})
    assert singles == whole
    assert drawn(f"{last}, {first} {middle[0]}.", patient) == f"{l}, {f} {m[0]}."
    assert drawn(f"{first[0]}. {last}", patient) == f"{f[0]}. {l}"
    assert drawn(f"{last},{first}", patient) == f"{l},{f}"
    assert drawn(f"{first[0]}.{middle[0]}.{last[0]}.", patient) == f"{f[0]}.{m[0]}.{l[0]}."
    assert drawn(f"DR. {first.upper()}\n{last.upper()}", patient) == f"DR. {f.upper()}\n{l.upper()}"
    assert drawn(f"{last.lower()}'s", patient) == f"{l.lower()}'s"
    assert drawn(f"{first}-{last}", patient) == f"{f}-{l}"


def test_initials_without_points_agree_with_names() -> None:
    for patient in map(str, range(50)):
        f, l = words(drawn("Karen Thompson", patient))  # noqa: E741 - as above
        assert drawn("KT", patient) == f[0] + l[0]
        assert drawn("KT'S", patient) == f"{f[0]}{l[0]}'S"
        assert drawn("KBT", patient)[::2] == f[0] + l[0]
        assert drawn("k.t.", patient) == f"{f[0]}.{l[0]}.".lower()


@given(st.lists(st.sampled_from(GIVEN + LAST), min_size=1, max_size=5), st.sampled_from([" ", ", ", "-", "\n", "/"]))
@settings(max_examples=1000)
def test_a_name_keeps_its_separators_and_a_word_of_it_by_chance_alone(names: list[str], mark: str) -> None:
    text = mark.join(names)
    outs = [drawn(text, patient) for patient in ("p1", "p2", "p3")]
    assert all(re.sub(r"[^\W\d_]+", "x", out) == re.sub(r"[^\W\d_]+", "x", text) for out in outs)
    kept = {"van", "de", "la", "del", "der", "den", "von", "st"}
    stay = set.intersection(*({word.casefold() for word in words(out)} for out in outs))
    assert not stay & {word.casefold() for word in words(text) if len(word) > 2} - kept


@pytest.mark.parametrize("text", ["\u0308Okonkwo", "Dr. \u0336\u036cOkonkwo", "Ada \u0301\u0301Okonkwo-\u0308Penn"])
def test_a_stray_accent_before_a_name_shields_none_of_it(text: str) -> None:
    assert not {"Okonkwo", "Penn", "Ada"} & set(re.findall("[A-Za-z]+", drawn(text)))


LATIN = st.text("abcdefghijklmnopqrstuvwxyzàéîõüçñšžåø", min_size=1, max_size=9)
SCRIPTS = st.one_of(LATIN, st.text("абвгдежзийклмнопрст", min_size=1, max_size=9), st.text("αβγδεζηθικλ", min_size=1))
KEPT = TITLES | AFTER | AFTER_COMMA | PARTICLES | LOWER_PARTICLES | PREFIXES
ONE_CASE = st.characters(categories=["Lu", "Ll", "Lo"])


@given(st.lists(SCRIPTS, min_size=1, max_size=3), st.sampled_from(["title", "upper", "lower"]), PATIENTS)
@settings(max_examples=1000)
def test_words_change_and_keep_their_style(parts: list[str], style: str, patient: str) -> None:
    text = " ".join(getattr(str, style)(part) for part in parts)
    out = drawn(text, patient)
    assert len(out.split()) == len(parts)
    for word, other in zip(text.split(), out.split(), strict=True):
        assert (
            getattr(str, "is" + style)(other)
            or len(word) == 1
            or re.search("^(Mc|Mac|De|La|Di|Du|Le|Van|Fitz)[A-Z]", other)
        )


@given(st.text(ONE_CASE, min_size=1, max_size=9), PATIENTS)
@settings(max_examples=1000)
def test_case_and_accents_do_not_count(text: str, patient: str) -> None:
    assume(len(text) == len(text.upper()) == len(text.lower()) and text.upper().lower() == text.lower())
    assert drawn(text.upper(), patient).casefold() == drawn(text.lower(), patient).casefold()


@pytest.mark.parametrize("name", ["José", "Łukasz", "MÜLLER", "Sørensen", "Zoë"])
def test_composed_and_decomposed_letters_are_alike(name: str) -> None:
    assert drawn(unicodedata.normalize("NFD", name)) == drawn(name)
    assert drawn("Muller") == drawn("Müller")


def gender_of(name: str) -> set[str]:
    return {role for role in "FM" if name in names().drawable(role, name[0].lower())}


@pytest.mark.parametrize("patient", ["p1", "p2", "p3"])
def test_first_names_keep_their_gender_and_surnames_are_surnames(patient: str) -> None:
    for name in ("Mary", "Elizabeth", "Karen", "Deborah", "Maria"):
        assert "F" in gender_of(drawn(name, patient))
    for name in ("John", "Robert", "Michael", "Jorge"):
        assert "M" in gender_of(drawn(name, patient))
    for name in ("Smith", "Garcia", "Nguyen", "Taylor", "Unheardof"):
        out = drawn(name, patient)
        assert out in names().drawable("S", out[0].lower())


def test_the_gender_given_serves_names_of_which_the_lists_tell_none() -> None:
    kind = kind_of("PATIENT")
    for patient in map(str, range(20)):
        for gender in ("F", "M"):
            assert gender in gender_of(surrogate("Leslie", kind, patient, SECRET, gender=gender))
            assert surrogate("Mary", kind, patient, SECRET, gender=gender) == drawn("Mary", patient)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Dr. John Smith, MD", r"Dr\. \w+ \w+, MD"),
        ("Mr. SMITH Jr.", r"Mr\. [A-Z]+ Jr\."),
        ("John Smith, M.D., Ph.D.", r"\w+ \w+, M\.D\., Ph\.D\."),
        ("John Smith III", r"\w+ \w+ III"),
        ("John Smith, DO", r"\w+ \w+, DO"),
        ("Ludwig von Hohenberg", r"\w+ von [A-Z]\w+"),
        ("María de la Cruz", r"\w+ de la [A-Z]\w+"),
        ("O'Brien", r"O'[A-Z][a-z]+"),
        ("Dr. D’Angelo’s", r"Dr\. D’[A-Z][a-z]+’s"),
        ("James'", r"\w+'"),
        ("Ahmad al-Rashid", r"\w+ al-[A-Z]\w+"),
        ("Frau Weber", r"Frau \w+"),
        ("Smith2", r"[A-Z][a-z]+[013-9]"),
    ],
)
def test_titles_degrees_particles_and_possessives_are_kept(text: str, form: str) -> None:
    out = drawn(text)
    assert re.fullmatch(form, out)
    assert not {"smith", "john", "brien", "weber", "rashid", "angelo", "cruz"} & {w.lower() for w in words(out)}


LOOK_ALIKES = ["MD", "RN", "DR", "Jr", "III", "Van", "St", "PA", "DO", "Do, Kim", "Anh Do", "SMITH, MA", "al lee"]


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_titles_without_a_name_and_look_alikes_are_names(text: str) -> None:
    assert not {w.lower() for w in words(drawn(text))} & {w.lower() for w in words(text)}
    if text in {"MD", "RN", "DR", "III"}:
        assert drawn(text).lower() == "".join(letter_map(SECRET, "p1")[letter] for letter in text.lower())


def test_scripts_without_lists_keep_length_script_and_initials() -> None:
    whole, short = drawn("Иван Петров"), drawn("И. Петров")
    assert [len(word) for word in whole.split()] == [4, 6]
    assert all("CYRILLIC" in unicodedata.name(char) for char in whole if char != " ")
    assert whole.split()[0][0] == short[0]
    assert whole.split()[1] == short.split()[1]
    assert whole.istitle()


def test_user_names_hold_the_names_of_notes() -> None:
    first, last = words(drawn("Karen Thompson"))
    assert re.fullmatch(rf"{first}\.{last}\d\d".lower(), drawn("karen.thompson17", label="USERNAME"))
    assert re.fullmatch(r"[a-z]{6}\d", drawn("jsmith3", label="USERNAME"))

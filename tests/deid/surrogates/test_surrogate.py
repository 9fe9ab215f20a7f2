"""Surrogates of every kind: all values as likely, the same for the same, unlike under another secret."""

from __future__ import annotations

import doctest
import re
import time
import unicodedata
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import KINDS, Kind, kind_of
from chaffinch.deid.surrogates import surrogate as module
from chaffinch.deid.surrogates.name_book import NameBook
from chaffinch.deid.surrogates.surrogate import surrogate
from chaffinch.errors import ConfigError
from tests.deid.releases import OTHER_SECRET, SECRET

DRAWN = [kind for kind in KINDS.values() if kind.category not in {"AGE", "DATE"}]
SAMPLES = {
    "PATIENT": ["Smith, John A.", "Garcia", "Nguyen", "Maria Lopez", "O'Brien", "Иван Петров", "Brown"],
    "USERNAME": ["jsmith3", "karen.w", "mgarcia"],
    "PROFESSION": ["plumber", "Retired Teacher", "engineer"],
    "HOSPITAL": ["Boston Medical Center", "St. Mary's Hospital", "BWHX", "Mercy General Hospital"],
    "ORGANIZATION": ["Acme Widgets, Inc.", "First National Bank of Omaha"],
    "STREET": ["12 Oak Street Apt 3", "Hauptstraße 117", "4401 N. Elm Ave", "Calle Mayor 23"],
    "CITY": ["Boston", "New York City", "Springfield, IL", "London"],
    "STATE": ["Massachusetts", "NY", "Bavaria"],
    "COUNTRY": ["Germany", "USA", "Brazil"],
    "ZIP": ["02139", "94110-1234"],
    "ROOM": ["Room 312B", "Bed 4-117"],
    "DEPARTMENT": ["Cardiology", "MICU"],
    "PHONE": ["617-253-1234", "(415) 555-0100", "x44123", "+49 89 1234567"],
    "EMAIL": ["john.smith@gmail.com", "kw12@partners.org"],
    "URL": ["http://www.boston-hospital.org/staff/17", "facebook.com/maria.lopez"],
    "IPADDR": ["10.0.0.17", "fe80::1"],
    "SSN": ["123-45-6789"],
    "MEDICALRECORD": ["12-34-56-7", "AB1234567", "MRN 00123"],
    "Own type": ["trial-A-0017"],
}  # fmt: skip
PAIRS = [(label, text) for label, texts in SAMPLES.items() for text in texts]


def plain(text: str) -> str:
    """What a reader takes for the same: no case, width, accents, separators."""
    spread = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return re.sub(r"[\W_]+", "", "".join(char for char in spread if not unicodedata.combining(char)))


def drawn(text: str, label: str, patient: str = "p1", secret: Secret = SECRET) -> str:
    return surrogate(text, kind_of(label), patient, secret)


def is_fixed(text: str, kind: Kind) -> bool:
    """Whether the text stays itself in the notes of every patient, up to what a reader takes for the same."""
    return all(plain(surrogate(text, kind, f"p{number}", SECRET)) == plain(text) for number in range(80))


@given(st.text(min_size=1, max_size=24), st.sampled_from(DRAWN))
@settings(max_examples=2000)
@example("--", KINDS["PATIENT"])
@example("[ID]", KINDS["ID"])
@example("\u0301", KINDS["CITY"])
def test_no_text_of_any_kind_is_kept_whoever_the_patient(text: str, kind: Kind) -> None:
    out = surrogate(text, kind, "p1", SECRET)
    assert out.strip()
    assert out == surrogate(text, kind, "p1", SECRET)
    assert not is_fixed(text, kind) or not plain(text)


POOL = (
    "boston smith st 12 oak street ma 02139 617-555-0142 555-0123 192.0.2.7 2001:db8::1 example.com @ www. http:// Dr."
)
POOL += (
    " III hospital of the room bed ext x ICU usa N.Y. M.D. O'Brien van , . / 's 1-800 +1 +49 0 00 ( ) # no p.o. box é"
)


@given(st.lists(st.sampled_from(POOL.split()), min_size=1, max_size=6), st.sampled_from(DRAWN), st.sampled_from(" ,-"))
@settings(max_examples=2000)
def test_no_text_made_of_telling_words_is_kept_whoever_the_patient(parts: list[str], kind: Kind, mark: str) -> None:
    text = mark.join(parts)
    assert not is_fixed(text, kind) or not plain(text)


@pytest.mark.parametrize(
    ("text", "label", "values"),
    [("7", "ID", 10), ("X", "LICENSE", 26), ("42", "ROOM", 90), ("J", "PATIENT", 26), ("WY", "STATE", 51)],
)
def test_a_value_stands_for_itself_as_often_as_any_other_does(text: str, label: str, values: int) -> None:
    counts = Counter(drawn(text, label, patient=str(number)) for number in range(100 * values))
    assert len(counts) == values
    assert sum((count - 100) ** 2 / 100 for count in counts.values()) < values + 4 * (2 * values) ** 0.5


@pytest.mark.parametrize("text", ["", "---", "…", " \n", "***", "🙂"])
def test_what_holds_no_letter_or_digit_becomes_a_tag(text: str) -> None:
    assert drawn(text, "PATIENT") == "[PATIENT]"


@pytest.mark.parametrize("text", ["1" * 1000, "a.b:" * 250, "O'" * 500, "M. " * 333, ":" * 999 + "1", " " * 998 + "x1"])
def test_hostile_texts_are_quick_and_longer_ones_become_a_tag(text: str) -> None:
    for kind in DRAWN:
        started = time.process_time()
        surrogate(text, kind, "p1", SECRET)
        assert time.process_time() - started < 1
        assert surrogate(text * 100, kind, "p1", SECRET) == f"[{kind.name}]"
        assert not is_fixed(text, kind)


@pytest.mark.parametrize("label", ["AGE", "DATE"])
def test_ages_and_dates_are_refused(label: str) -> None:
    with pytest.raises(ConfigError, match="use the operator"):
        drawn("1/2/2012", label)


@pytest.mark.parametrize(("label", "text"), PAIRS)
def test_the_form_of_the_text_makes_no_difference_beyond_its_form(label: str, text: str) -> None:
    assert plain(drawn(text.upper(), label)) == plain(drawn(text, label))
    assert plain(drawn(unicodedata.normalize("NFD", text), label)) == plain(drawn(text, label))


def test_another_secret_or_patient_gives_other_surrogates() -> None:
    mine = [drawn(text, label) for label, text in PAIRS]
    theirs = [drawn(text, label, secret=OTHER_SECRET) for label, text in PAIRS]
    neighbours = [drawn(text, label, patient="p2") for label, text in PAIRS]
    assert sum(a == b for a, b in zip(mine, theirs, strict=True)) <= 1  # small lists: by chance alone
    assert sum(a == b for a, b in zip(mine, neighbours, strict=True)) <= 1


def test_what_is_drawn_does_not_depend_on_what_was_drawn_before() -> None:
    forwards = {pair: drawn(pair[1], pair[0]) for pair in PAIRS}
    backwards = {pair: drawn(pair[1], pair[0]) for pair in reversed(PAIRS)}
    assert forwards == backwards


def test_labels_of_one_family_agree() -> None:
    assert len({drawn("John Smith", label) for label in ("PATIENT", "DOCTOR", "FAMILY", "NAME")}) == 1
    assert len({drawn("1234567", label) for label in ("MEDICALRECORD", "ACCOUNT", "IDNUM", "ID")}) == 1
    assert len({drawn("617-253-1234", label) for label in ("PHONE", "FAX", "CONTACT")}) == 1


def test_contacts_of_untold_kind_are_told_by_their_form() -> None:
    for label, text in [("EMAIL", "jo@x.org"), ("URL", "www.x.org/a"), ("IPADDR", "10.0.0.1"), ("PHONE", "253-1234")]:
        assert drawn(text, "CONTACT") == drawn(text, label)


def test_reprs_and_errors_hold_no_text() -> None:
    from chaffinch.deid.surrogates.letters import SurrogateSource

    book = NameBook()
    book.add_real_words(["canary"])
    book.surrogate_for("canary", lambda _: "Canary")
    shown = repr(SurrogateSource(SECRET, "patient-17", book)) + repr(book)
    assert "canary" not in shown.lower()
    assert "17" not in shown
    with pytest.raises(ConfigError) as caught:
        drawn("canary", "AGE")
    assert "canary" not in str(caught.value)


def test_examples_in_docstrings_hold() -> None:
    from chaffinch.deid.surrogates import letters as surrogate_letters
    from chaffinch.deid.surrogates import permute

    for each in (module, surrogate_letters, permute):
        assert doctest.testmod(each).failed == 0

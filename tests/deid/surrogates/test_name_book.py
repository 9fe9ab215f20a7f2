"""The names of a patient's notes: two people never become one, nobody becomes another, earlier notes stay."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import LAYER, NumberedDocument, Release, Released, release
from chaffinch.deid.surrogates import names as surrogate_names
from chaffinch.deid.surrogates.lists import SIZES, names, surnames
from chaffinch.deid.surrogates.name_book import NameBook
from chaffinch.deid.surrogates.surrogate import surrogate
from chaffinch.text import Document, Span
from tests.attacks.sizes import sized
from tests.deid.releases import FunctionDetector

pytestmark = pytest.mark.drill

SECRET = Secret(np.random.default_rng(5).bytes(32))
SURROGATES = Release(Policy.read("i2b2-surrogate"), SECRET)
PATIENTS = sized(150, 3000)
_MARK = re.compile(r"<([^>]*)>")


def note(text: str, number: int, patient: str) -> Document:
    """A note whose names stand in <…>, which are not part of it."""
    spans, plain, end = [], "", 0
    for found in _MARK.finditer(text):
        plain += text[end : found.start()]
        spans.append(Span(len(plain), len(plain) + len(found[1]), "DOCTOR"))
        plain, end = plain + found[1], found.end()
    return Document.make(plain + text[end:], id=f"{patient}-{number}", group=patient, layers={LAYER: spans})


def notes(people: Sequence[Sequence[str]], patient: str) -> list[Document]:
    """One note for each list of names."""
    return [note("".join(f"Seen by <{name}>. " for name in some), n, patient) for n, some in enumerate(people)]


def released(docs: Sequence[Document]) -> list[str]:
    """The released texts of documents that are marked already."""
    results = release(
        [NumberedDocument(n, doc) for n, doc in enumerate(docs)], SURROGATES, FunctionDetector(list, "marked")
    )
    assert all(isinstance(one, Released) for one in results)
    return [one.text for one in results if isinstance(one, Released)]


def names_in(text: str) -> list[str]:
    return re.findall(r"Seen by (\S+)\.", text)


def test_the_marks_of_these_tests_are_where_they_should_be() -> None:
    doc = note("Seen by <Penn>. Seen by <Lowe>. ", 0, "p")
    assert doc.text == "Seen by Penn. Seen by Lowe. "
    assert [doc.text[span.start : span.end] for span in doc.layer(LAYER)] == ["Penn", "Lowe"]


def test_the_earlier_name_keeps_its_surrogate_and_the_later_one_is_drawn_again() -> None:
    book = NameBook()
    book.add_real_words(["penn", "lowe", "ash"])
    draws = {"penn": ["Oak"], "lowe": ["Oak", "Ash", "LOWE"], "ash": ["Penn", "Oak", "Elm"], "fir": ["Fir"]}
    assert {word: book.surrogate_for(word, lambda n, own=own: own[n]) for word, own in draws.items()} == {  # type: ignore[misc]
        "penn": "Oak", "lowe": "LOWE", "ash": "Elm", "fir": "Fir",
    }  # fmt: skip
    assert book.surrogate_for("penn", lambda _: "Else") == "Oak"


def test_surrogates_of_fifty_surnames_of_the_census_never_meet() -> None:
    rng, kind, pool = np.random.default_rng(1), kind_of("DOCTOR"), [name for name in surnames() if len(name) > 3]
    for patient in range(PATIENTS):
        chosen = [pool[place] for place in rng.choice(len(pool), 50, replace=False)]
        drawn = {surrogate(name, kind, f"p{patient}", SECRET).lower() for name in chosen}
        assert len(drawn) == len({name.lower() for name in chosen})


def test_surrogates_of_fifty_first_names_never_meet() -> None:
    rng, kind = np.random.default_rng(1), kind_of("PATIENT")
    pool = [name for (role, _), own in names().real.items() if role == "F" for name in own if len(name) > 3]
    for patient in range(PATIENTS):
        chosen = [pool[place] for place in rng.choice(len(pool), 50, replace=False)]
        assert len({surrogate(name, kind, f"p{patient}", SECRET) for name in chosen}) == 50


def test_names_nobody_knows_meet_in_few_patients_before_they_are_settled() -> None:
    """Of 50 names that no list has, with initials as in the census: fewer than one patient in 1,000."""
    rng, kind = np.random.default_rng(2), kind_of("DOCTOR")
    letters = np.array([name[0] for name in surnames()])
    met, number = 0, sized(400, 20_000)
    for patient in range(number):
        chosen = [f"{letter}{n}zq".translate(str.maketrans("0123456789", "aeioubcdfg")) for n, letter in
                  enumerate(rng.choice(letters, 50), start=100)]  # fmt: skip
        drawn = [surrogate(name, kind, f"p{patient}", SECRET) for name in chosen]
        met += len(set(drawn)) < len(drawn)
    # What is expected is 0.56 of 1,000: in the drill, 20 of 20,000 patients are three standard deviations more.
    assert met <= max(1, number // 1000)


def test_ranges_of_surnames_are_wide_enough_for_fifty_unknown_names() -> None:
    """The chance that two of 50 meet, worked out: pairs of one initial over the size of its range."""
    _, counts = np.unique([name[0] for name in surnames()], return_counts=True)
    alike = float(((counts / counts.sum()) ** 2).sum())
    assert 50 * 49 / 2 * alike / SIZES["S"] < 1 / 1000


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges so narrow that unknown names meet all the time."""
    monkeypatch.setattr(surrogate_names, "SIZES", {"F": 40, "M": 40, "S": 40})


def unknown(rng: np.random.Generator, number: int) -> list[str]:
    """Names of the initials B and S that no list has."""
    made: dict[str, None] = {}
    while len(made) < number:
        made["BS"[rng.integers(2)] + "".join(rng.choice(list("xqzjk"), 6))] = None
    return list(made)


@pytest.mark.usefixtures("narrow")
def test_in_a_run_no_two_people_share_a_surrogate_and_nobody_becomes_another() -> None:
    rng = np.random.default_rng(3)
    for patient in range(30):
        people = unknown(rng, 20)
        texts = released(notes([people[:8], people[4:14], people], f"p{patient}"))
        out = names_in(texts[-1])
        assert len({name.lower() for name in out}) == 20
        assert names_in(texts[0]) == out[:8]
        assert names_in(texts[1]) == out[4:14]
        others = [{word.lower() for word in people} - {name.lower()} for name in people]
        assert not any(name.lower() in rest for name, rest in zip(out, others, strict=True))


@pytest.mark.usefixtures("narrow")
def test_notes_that_are_added_change_nothing_in_those_before() -> None:
    rng = np.random.default_rng(4)
    for patient in range(40):
        people = unknown(rng, 18)
        some = [list(rng.choice(people, 7, replace=False)) for _ in range(5)]
        whole = released(notes(some, f"p{patient}"))
        for first in range(1, 5):
            assert released(notes(some[:first], f"p{patient}")) == whole[:first]


@pytest.mark.usefixtures("narrow")
def test_other_patients_and_the_order_of_the_batch_change_nothing() -> None:
    rng = np.random.default_rng(6)
    docs = [doc for patient in "abc" for doc in notes([unknown(rng, 9) for _ in range(3)], patient)]
    given = [NumberedDocument(n, doc) for n, doc in enumerate(docs)]
    detector = FunctionDetector(list, "marked")
    whole = release(given, SURROGATES, detector)
    for order in (rng.permutation(9), rng.permutation(9)):
        assert release([given[n] for n in order], SURROGATES, detector) == [whole[n] for n in order]
    alone = [one for start in (0, 3, 6) for one in release(given[start : start + 3], SURROGATES, detector)]
    assert alone == whole


def test_mail_addresses_and_names_of_later_notes_agree_with_those_of_earlier_ones() -> None:
    text = "Seen by Karen Thompson, karen.thompson@mercy.org"
    spans = [Span(8, 22, "DOCTOR"), Span(24, len(text), "EMAIL")]
    first = Document.make(text, id="1", group="p", layers={LAYER: spans})
    second = Document.make("Thompson, K.", id="2", group="p", layers={LAYER: [Span(0, 12, "DOCTOR")]})
    one, two = released([first, second])
    name, mail = one.removeprefix("Seen by ").split(", ")
    assert mail.split("@")[0] == name.lower().replace(" ", ".")
    assert two == f"{name.split()[1]}, {name[0]}."

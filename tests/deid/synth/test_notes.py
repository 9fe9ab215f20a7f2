"""Generated notes: every identifier is labelled, exactly; halves share no name; same seed, same bytes."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from chaffinch.deid import notes
from chaffinch.deid.synth import notes as synth
from chaffinch.deid.synth import personas
from chaffinch.deid.synth.personas import Half, Patient, Person
from chaffinch.errors import ConfigError
from chaffinch.text import Document

PATIENTS, EACH, SEED = 60, 6, 3
PEOPLE = ("PATIENT", "FAMILY", "DOCTOR")


@pytest.fixture(scope="module")
def made() -> list[Document]:
    return notes(PATIENTS, EACH, seed=SEED)


@cache
def known(number: int, *, seed: int = SEED, half: Half = "all") -> Patient:
    """Return the patient of the notes with this number."""
    return personas.draw_patient(number, EACH, half, np.random.default_rng([seed, number]))


def with_patients(made: list[Document]) -> Iterator[tuple[Document, Patient]]:
    for at, doc in enumerate(made):
        yield doc, known(at // EACH + 1)


def people(patient: Patient) -> list[Person]:
    return [patient.person, *patient.family, *patient.clinicians]


def slices(doc: Document, label: str) -> list[str]:
    return [doc.text[span.start : span.end] for span in doc.layer() if span.label == label]


def test_notes_are_grouped_by_patient(made: list[Document]) -> None:
    assert len(made) == PATIENTS * EACH
    assert [doc.id for doc in made[:7]] == [*(f"p0001-0{n}" for n in range(1, 7)), "p0002-01"]
    for number in range(PATIENTS):
        assert {doc.group for doc in made[number * EACH : (number + 1) * EACH]} == {f"p{number + 1:04d}"}


def test_all_labels_and_eight_kinds_of_notes_occur(made: list[Document]) -> None:
    assert {span.label for doc in made for span in doc.layer()} == set(synth.LABELS)
    assert len({doc.meta["kind"] for doc in made}) == 8
    sentences = [text for name, pool in personas.pools().items() for text in pool if "ead" not in name]
    assert len(set(sentences)) >= 250


def test_spans_are_apart_and_end_at_token_edges(made: list[Document]) -> None:
    for doc in made:
        assert all(one.end <= two.start for one, two in pairwise(doc.layer()))
        starts, ends = set(doc.tokens[:, 0].tolist()), set(doc.tokens[:, 1].tolist())
        for span in doc.layer():
            assert span.start in starts, (doc.id, span)
            assert span.end in ends, (doc.id, span)


def test_slices_are_what_was_put_in(made: list[Document]) -> None:
    for doc, patient in with_patients(made):
        facts = patient.facts
        for label, key in (("EMAIL", "email"), ("CITY", "city"), ("STREET", "street"), ("PROFESSION", "profession")):
            assert set(slices(doc, label)) <= {facts[key]}
        digits = "".join(patient.phone[part] for part in "abc")
        for phone in slices(doc, "PHONE"):
            assert re.sub(r"\D", "", phone) in (digits, "1" + digits, digits[3:], patient.phone["e"])
        for hospital in slices(doc, "HOSPITAL"):
            letters = "".join(word[0] for word in facts["hospital"].split() if word != "of")
            assert facts["hospital"].startswith(hospital) or hospital == letters
        years = [(date.fromisoformat(doc.meta["date"]) - patient.born).days / 365.2425]
        assert all(int(age) == int(years[0]) or 60 <= int(age) <= 95 for age in slices(doc, "AGE"))


def test_people_are_written_with_their_own_names_and_labels(made: list[Document]) -> None:
    for doc, patient in with_patients(made):
        for label in PEOPLE:
            of_label = [person for person in people(patient) if person.label == label]
            for name in slices(doc, label):
                words = re.findall(r"[^\W\d_]{3,}", name.casefold())
                spelt = [f"{p.first} {p.middle} {p.last}" for p in of_label]
                spelt += [f"{p.first[0]}{p.middle[0]}{p.last[0]}" for p in of_label]  # initials
                known_words = [
                    set(re.findall(r"[^\W\d_]+", one.casefold() + " " + one.upper().casefold())) for one in spelt
                ]
                assert any(words_of >= set(words) for words_of in known_words), doc.id
                assert name == name.strip()
                assert name[0].isalpha()


def test_every_mention_is_labelled(made: list[Document]) -> None:
    """Search each note for all that is known about its patient: whole words, as written or in capitals."""
    found = 0
    for doc, patient in with_patients(made):
        inside = np.zeros(len(doc.text), bool)
        for span in doc.layer():
            inside[span.start : span.end] = True
        names = {name for person in people(patient) for name in (person.first, person.last)}
        values = names | {name.upper() for name in names}
        values |= {patient.facts[key] for key in ("mrn", "account", "email", "street", "city", "hospital")}
        for value in values:
            for hit in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", doc.text):
                found += 1
                assert inside[hit.start() : hit.end()].all(), (doc.id, value)
    assert found > 10 * len(made)


def test_names_also_appear_without_cues(made: list[Document]) -> None:
    bare = lower = possessive = upper = 0
    for doc in made:
        for span in doc.layer():
            if span.label in PEOPLE:
                before, after = doc.text[: span.start], doc.text[span.end : span.end + 2]
                name = doc.text[span.start : span.end]
                bare += before.endswith((". ", "\n")) and " " not in name
                lower += name.islower()
                upper += name.isupper() and len(name) > 4
                possessive += after == "'s"
    assert min(bare, lower, upper, possessive) > 20


def test_train_and_held_out_share_no_name() -> None:
    words: dict[Half, set[str]] = {}
    halves: tuple[Half, ...] = ("train", "held-out")
    for half in halves:
        docs = notes(80, 4, seed=1, names=half)
        found = " ".join(name for doc in docs for label in PEOPLE for name in slices(doc, label)).casefold()
        particles = {"van", "von", "der", "den", "del", "dos", "bin"}
        words[half] = {word for word in re.findall(r"[^\W\d_][\w'-]{2,}", found) if word not in particles}
        initials = {word for word in words[half] if len(word) == 3}
        assert len(words[half]) > 200
        words[half] -= initials
    assert not words["train"] & words["held-out"]
    one, other = (personas.lists(half) for half in halves)
    for female in (True, False):
        assert not set(one.first[female]) & set(other.first[female] + other.last)
    assert not set(one.last) & set(other.last + other.first[True] + other.first[False])
    assert min(len(one.last), len(other.last)) > 2000


def test_accents_do_not_move_offsets(made: list[Document]) -> None:
    """Check that offsets count code points: an accented name and the text after it are found."""
    names = after = 0
    for doc, patient in with_patients(made):
        first = next((at for at, char in enumerate(doc.text) if not char.isascii()), len(doc.text))
        for span in doc.layer():
            written = doc.text[span.start : span.end]
            names += span.label in PEOPLE and any(p.last in written for p in people(patient) if not p.last.isascii())
            if span.start > first and span.label in ("EMAIL", "CITY", "STREET"):
                after += 1
                assert written == patient.facts[span.label.lower()]
    assert names > 5
    assert after > 5


def test_dates_keep_their_intervals(made: list[Document]) -> None:
    read = 0
    for at, (doc, patient) in enumerate(with_patients(made)):
        visit = date.fromisoformat(doc.meta["date"])
        place = at % EACH + 1
        assert patient.visits[place] == visit
        assert all(one < two for one, two in pairwise(patient.visits))
        days = {patient.born, patient.event, *patient.visits[place - 1 : place + 2]}
        days |= {visit - timedelta(n) for n in range(2, 7)}
        for written in slices(doc, "DATE"):
            for form in (r"(\d{4})-(\d\d)-(\d\d)", r"(\d{4})(\d\d)(\d\d)", r"(\d{4})/(\d\d)/(\d\d)"):
                if match := re.fullmatch(form, written):
                    read += 1
                    assert date(*map(int, match.groups())) in days
    assert read > 50


@pytest.mark.parametrize("form", ["any", "number", "short", "month", "year", "weekday"])
def test_written_dates_by_hand(form: str) -> None:
    written = {personas.write_date(date(2012, 3, 7), form, np.random.default_rng(n)) for n in range(300)}
    assert len(written) == len(set(personas.table("forms")["date"][form]))
    by_hand = {
        "any": {"3/7/2012", "07-Mar-12", "Wednesday, March 7, 2012", "March 7th, 2012"},
        "number": {"20120307", "03/07/12"},
        "short": {"3/7", "7th", "Wed 3/7"},
        "month": {"March of 2012", "Mar '12", "spring 2012"},
        "year": {"2012", "'12", "2010s"},
        "weekday": {"Wednesday", "Wed"},
    }
    assert by_hand[form] <= written
    assert personas.write_date(date(2011, 12, 11), "short", np.random.default_rng(0)).find("11st") == -1


def test_every_template_can_be_filled() -> None:
    patient = known(1)
    days = dict.fromkeys(("prev", "visit", "next", "born", "event", "admit"), patient.visits[1])
    titles: list[str] = [
        t for part in personas.table("kinds").values() for entry in part.values() for t in entry["titles"]
    ]
    for half in ("train", "held-out", "all"):
        lists = personas.lists(half)
        scene = synth._Scene(patient, days, patient.clinicians[0], lists)
        for template in [text for pool in personas.pools().values() for text in pool] + titles:
            page = synth._Page(scene, np.random.default_rng(0))
            page.add(template)
            text = "".join(page.parts)
            assert "{" not in text
            assert "}" not in text
            labelled = re.findall(
                r"\{(?:patient|family|doctor2?|author|nurse|visit|prev|next|mrn|phone|age)\b", template
            )
            assert len(page.spans) >= len(labelled)
        assert all(lists.templates.values())
        assert all(lists.words.values())


def test_same_seed_same_bytes_in_any_process(made: list[Document]) -> None:
    code = (
        "import hashlib\nfrom chaffinch.deid import notes\n"
        "docs = notes(3, 4, seed=5, names='train')\n"
        "print(hashlib.sha256(repr([(d.id, d.text, d.layer()) for d in docs]).encode()).hexdigest())"
    )
    here = repr([(d.id, d.text, d.layer()) for d in notes(3, 4, seed=5, names="train")]).encode()
    for salt in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": salt}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == hashlib.sha256(here).hexdigest()
    assert notes(2, EACH, seed=SEED) == made[: 2 * EACH]
    assert notes(2, EACH, seed=SEED + 1) != made[: 2 * EACH]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patients": 0}, "patients must be at least 1, got 0"),
        ({"patients": 1, "notes_each": 0}, "notes_each must be at least 1"),
        ({"patients": 1, "seed": -1}, "seed must be at least 0"),
        ({"patients": 1, "names": "test"}, "names must be one of train, held-out, all, got 'test'"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        notes(**options)

"""Varied notes: every sub-type, exact spans, no template at two sites, many forms, same seed same bytes."""

from __future__ import annotations

import hashlib
import os
import re
import string
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import date
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from chaffinch.deid import notes
from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.deid.kinds import KINDS
from chaffinch.deid.surrogates.lists import entries
from chaffinch.deid.synth import forms as synth_forms
from chaffinch.deid.synth import headers as synth_heads
from chaffinch.deid.synth import names as synth_names
from chaffinch.deid.synth import notes as synth
from chaffinch.deid.synth import personas
from chaffinch.deid.synth import varied as synth_varied
from chaffinch.deid.synth.page import Hand, NoteBuilder, Scene, wrap_lines
from chaffinch.deid.synth.personas import Half, Person
from chaffinch.deid.synth.varied import SITES, templates, templates_of
from chaffinch.errors import ConfigError
from chaffinch.text import Document, Span

PATIENTS, EACH, SEED = 240, 2, 5
PEOPLE = ("PATIENT", "FAMILY", "DOCTOR")
# The distinct shapes of each label: letters and digits are alike, runs of them are one.
LEAST_SHAPES = {
    "PATIENT": 25, "FAMILY": 25, "DOCTOR": 40, "USERNAME": 12, "PROFESSION": 6, "HOSPITAL": 20, "ORGANIZATION": 12,
    "STREET": 25, "CITY": 10, "STATE": 3, "COUNTRY": 3, "ZIP": 5, "LOCATION-OTHER": 6, "ROOM": 9, "DEPARTMENT": 20,
    "AGE": 5, "DATE": 90, "PHONE": 30, "FAX": 20, "EMAIL": 10, "URL": 9, "IPADDR": 4, "SSN": 5, "MEDICALRECORD": 12,
    "HEALTHPLAN": 8, "ACCOUNT": 8, "LICENSE": 7, "VEHICLE": 7, "DEVICE": 8, "BIOID": 3, "IDNUM": 16,
}  # fmt: skip

IDENTIFYING = re.compile(
    r"\{(?:patient|family|doctor2?|author|nurse|username|prev|visit|next|admit|born|event|age|profession|industry|"
    r"hospital|org|street|city|state|country|zip|place|room|dept|phone|ext|pager|fax|email|url|ip|ssn|mrn|plan|account|"
    r"license|vehicle|serial|bioid|idnum|accession)\b(?::\w+)?\}"
)


@pytest.fixture(scope="module")
def made() -> list[Document]:
    return notes(PATIENTS, EACH, seed=SEED, style="varied")


def slices(doc: Document, label: str) -> list[str]:
    return [doc.text[span.start : span.end] for span in doc.layer() if span.label == label]


def shape(text: str) -> str:
    plain = re.sub(r"\d", "9", re.sub(r"[^\W\d_]", lambda c: "A" if c[0].isupper() else "a", text))
    return re.sub(r"a+", "a", re.sub(r"A{2,}", "AA", plain))


def test_every_sub_type_occurs_and_is_known(made: list[Document]) -> None:
    assert set(synth_varied.LABELS) <= set(KINDS)
    assert len(synth_varied.LABELS) == 31
    counts = Counter(span.label for doc in made for span in doc.layer())
    assert set(counts) == set(synth_varied.LABELS) == set(synth.labels("varied"))
    assert min(counts.values()) > 15


def test_spans_are_apart_and_end_at_token_edges(made: list[Document]) -> None:
    for doc in made:
        assert all(one.end <= two.start for one, two in pairwise(doc.layer()))
        starts, ends = set(doc.tokens[:, 0].tolist()), set(doc.tokens[:, 1].tolist())
        for span in doc.layer():
            assert span.start in starts, (doc.id, span)
            assert span.end in ends, (doc.id, span)


def test_slices_are_what_was_put_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record every labelled piece as it is written; every span must be one such piece."""
    pieces: list[tuple[str, str]] = []
    honest = NoteBuilder.put

    def noted(self: NoteBuilder, text: str, label: str = "") -> None:
        if label:
            pieces.append((text, label))
        honest(self, text, label)

    monkeypatch.setattr(NoteBuilder, "put", noted)
    docs = notes(24, 2, seed=2, style="varied")
    read = [(doc.text[span.start : span.end], span.label) for doc in docs for span in doc.layer()]
    assert len(read) == len(pieces) > 500
    for (found, label), (text, expected) in zip(read, pieces, strict=True):
        assert label == expected
        plain = found.casefold().removesuffix(".") if not text.endswith(".") else found.casefold()
        slipped = label == "PROFESSION" and abs(len(found) - len(text)) <= 3
        assert plain in (text.casefold(), text.upper().casefold(), text.lower()) or slipped


def test_every_mention_of_a_name_is_labelled(made: list[Document]) -> None:
    """Search the notes of a patient for the names in them; words that templates and word lists write are left out."""
    tables = [personas.table(name) for name in ("varied/fields", "varied/words", "varied/kinds", "words")]
    written = repr([templates(), tables, personas.lists("all").words]).casefold()
    known: defaultdict[str | None, set[str]] = defaultdict(set)
    for doc in made:
        for label in PEOPLE:
            known[doc.group] |= {word.casefold() for text in slices(doc, label) for word in re.findall(r"\w{4,}", text)}
    found = 0
    for doc in made:
        hidden = list(doc.text)
        for span in doc.layer():
            hidden[span.start : span.end] = " " * (span.end - span.start)
        left = {word.casefold() for word in re.findall(r"\w{4,}", "".join(hidden))}
        # A surname that is a common word too, such as Duty, may be written in its ordinary sense.
        names = {word for word in known[doc.group] if word not in written and not word_lists().is_common(word)}
        found += len(names)
        assert not left & names, doc.id
    assert found > 5 * len(made)


def test_identifiers_side_by_side_are_not_merged(made: list[Document]) -> None:
    near = Counter[tuple[str, str]]()
    for doc in made:
        for one, two in pairwise(doc.layer()):
            if two.start - one.end <= 1:
                near[one.label, two.label] += 1
    assert near["STATE", "ZIP"] > 5
    assert near["DATE", "DATE"] > 3
    assert sum(near.values()) > 50


def test_the_name_of_a_field_stays_outside() -> None:
    """Check that in headers of labels and values no span contains the label of its field with a colon."""
    titles = [
        label for field in personas.table("varied/fields")["field"].values() for label in field["labels"] if label
    ]
    for doc in notes(60, 2, seed=8, style="varied"):
        for span in doc.layer():
            text = doc.text[span.start : span.end].casefold()
            assert not any(text.startswith(f"{title.casefold()}:") for title in titles)


def test_every_template_can_be_filled() -> None:
    rng = np.random.default_rng(0)
    scene, _ = synth_varied._story(2, "all", rng)
    days = dict.fromkeys(("prev", "visit", "next", "admit"), scene.days["event"])
    full = Scene(
        {**scene.cast, "author": scene.cast["doctor"][:1]}, {**scene.days, **days}, scene.bags, scene.phones,
        scene.words, scene.habits,
    )  # fmt: skip
    fields = personas.table("varied/fields")["field"].values()
    tables = personas.table("varied/kinds").values()
    texts = [text for name, pool in templates().items() if name != "fields" for text in pool.values()]
    texts += [text for site in SITES for text in templates_of(site)["charts"].values()]
    texts += [value for field in fields for value in field["values"]]
    texts += [title for part in tables for entry in part.values() for title in entry["titles"]]
    for text in texts:
        page = NoteBuilder(full, Hand(), rng)
        page.add(text)
        assert not set("{}") & set(page.text())
        assert len(page.spans) == len(IDENTIFYING.findall(text)), text
    for layout in synth_heads.layouts():
        page = NoteBuilder(full, Hand(), rng)
        synth_heads.write_head(page, layout)
        assert not set("{}") & set(page.text())
        assert page.spans


def test_charts_hold_no_identifier_that_is_not_a_slot() -> None:
    """Check that days, months, titled names, telephones and ages occur in slots only."""
    named = re.compile(
        r"\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|January|February|April|June|July|August|September|October|"
        r"November|December|Christmas|Easter|Thanksgiving|(?:Mr|Ms)\.? [A-Z][a-z]+|[2-9]\d\d-\d{4}|\d+[- ]year-old)\b"
    )
    for site in SITES:
        charts = templates_of(site)["charts"]
        assert len(charts) > 50
        for name, text in charts.items():
            assert not named.search(re.sub(r"\{[^}]*\}", "{}", text)), name


def test_sites_share_no_template(made: list[Document]) -> None:
    for one, two in combinations(SITES, 2):
        for pool in (*templates(), "charts"):
            assert not templates_of(one)[pool].keys() & templates_of(two)[pool].keys()
            assert not set(templates_of(one)[pool].values()) & set(templates_of(two)[pool].values())
    for name, all_of in templates().items():
        assert {one for site in SITES for one in templates_of(site)[name]} == set(all_of)
        assert all(templates_of(site)[name] for site in SITES)
    used: defaultdict[str, set[str]] = defaultdict(set)
    for doc in made:
        assert doc.meta["templates"]
        used[doc.meta["site"]] |= set(doc.meta["templates"])
    assert set(used) == set(SITES)
    assert all(not used[one] & used[two] for one, two in combinations(SITES, 2))
    assert sum(map(len, used.values())) > 0.75 * sum(map(len, templates().values()))


def test_chosen_sites_and_halves_are_held_out() -> None:
    one = notes(40, 2, seed=1, names="train", style="varied", sites="abcd")
    two = notes(40, 2, seed=2, names="held-out", style="varied", sites="ef")
    assert {doc.meta["site"] for doc in one} == set("abcd")
    assert {doc.meta["site"] for doc in two} == set("ef")
    ids = [{identity for doc in docs for identity in doc.meta["templates"]} for docs in (one, two)]
    assert not ids[0] & ids[1]
    assert {doc.group: doc.meta["site"] for doc in one}.keys() == {doc.group for doc in one}
    assert all(a.meta["site"] == b.meta["site"] for a, b in pairwise(one) if a.group == b.group)


def test_train_and_held_out_share_no_name() -> None:
    halves: tuple[Half, ...] = ("train", "held-out")
    drawn: dict[Half, set[str]] = {}
    particles = personas.table("varied/names")["surname"]["particles"].replace(";", " ").casefold().split()
    for half in halves:
        names = synth_names.NameDrawer(half, np.random.default_rng(4))
        people = [names.person(bool(n % 2), "DOCTOR") for n in range(1500)]
        words = {word for one in people for word in re.split(r"[\s-]", f"{one.first} {one.last}".casefold())}
        drawn[half] = words - set(particles) - {"", "al", "uí", "ó"}
        assert len(drawn[half]) > 1500
    assert not drawn["train"] & drawn["held-out"]
    one, other = (synth_names.names_of_half(half) for half in halves)
    assert not set(one.cities) & set(other.cities)
    assert min(len(one.last), len(other.last)) > 2500


def test_names_are_frequent_rare_invented_double_and_with_particles() -> None:
    names = synth_names.NameDrawer("all", np.random.default_rng(0))
    lasts = [names.surname() for _ in range(1000)]
    listed = set(entries("names-last"))
    frequent = set(list(entries("names-last"))[:500])
    particles = tuple(personas.table("varied/names")["surname"]["particles"].split(";"))
    assert sum(last in frequent for last in lasts) > 100
    assert sum(last in listed - frequent for last in lasts) > 300
    assert sum("-" in last for last in lasts) > 20
    assert sum(last.startswith(particles) for last in lasts) > 30
    assert sum(last.isalpha() and last not in listed for last in lasts) > 100


def test_many_shapes_of_every_label(made: list[Document]) -> None:
    shapes: defaultdict[str, set[str]] = defaultdict(set)
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for doc in made:
        for span in doc.layer():
            texts[span.label].add(doc.text[span.start : span.end])
            shapes[span.label].add(shape(doc.text[span.start : span.end]))
    few = {label: len(shapes[label]) for label, least in LEAST_SHAPES.items() if len(shapes[label]) < least}
    assert set(LEAST_SHAPES) == set(synth_varied.LABELS)
    assert not few
    assert len(texts["PROFESSION"]) > 150
    plain = notes(PATIENTS, EACH, seed=SEED)
    for label in ("DATE", "PHONE", "DOCTOR", "STREET"):
        before = {shape(text) for doc in plain for text in slices(doc, label)}
        assert len(shapes[label]) > 1.5 * len(before), label


def test_hands_differ_and_some_notes_identify_nobody(made: list[Document]) -> None:
    assert sum(doc.text.isupper() for doc in made) > 5
    assert sum(doc.text.islower() for doc in made) > 5
    assert sum(not doc.layer() for doc in made) > 10
    assert 0.5 < sum(doc.meta["kind"] == "chart" for doc in made) / len(made) < 0.7
    long = [max(map(len, doc.text.split("\n"))) for doc in made]
    assert sum(width > 120 for width in long) > 50


def test_wrapping_moves_nothing_and_breaks_no_identifier() -> None:
    text = "seen by Anna van Dyk on the ward today"
    at = text.index("Anna")
    done = wrap_lines(text, [Span(at, at + 12, "DOCTOR")], 12)
    assert len(done) == len(text)
    assert done[at : at + 12] == "Anna van Dyk"
    assert done.replace("\n", " ") == text
    assert "\n" in done


def test_a_full_stop_of_an_abbreviation_belongs_to_the_date() -> None:
    scene, _ = synth_varied._story(1, "all", np.random.default_rng(1))
    page = NoteBuilder(scene, Hand(), np.random.default_rng(0))
    page.put("due ")
    page.put("3 Aug", "DATE")
    page.put(". Then ")
    page.put("Hale", "DOCTOR")
    page.put(".")
    assert [page.text()[span.start : span.end] for span in page.spans] == ["3 Aug.", "Hale"]


def test_written_forms_by_hand() -> None:
    rng, when = np.random.default_rng(0), date(2012, 3, 7)
    assert synth_forms.write_day(when, "{wd} {mm}/{dd}/{yy} {dec}s {Season} {MON} {dow}", rng) == (
        "Wed 03/07/12 10s Spring MAR Weds"
    )
    assert [synth_forms.spell_number(n) for n in (7, 20, 99, 101)] == ["seven", "twenty", "ninety-nine", "101"]
    person = Person("Ana", "Bea", "de Cal", True, "DOCTOR")
    assert synth_forms.write_name(person, "{L}, {F} {m}. {f}{l}") == "de Cal, Ana B. AD"
    made = {synth_forms.fill_code("#@[xy]", np.random.default_rng(n)) for n in range(50)}
    assert all(re.fullmatch(r"\d[A-Z][xy]", one) for one in made)
    parts = {"a": "212", "b": "555", "c": "1234", "e": "4321", "x": "7"}
    assert synth_forms.write_phone("phone", parts, "({a}) {b}-{c}") == "(212) 555-1234"
    assert synth_forms.write_phone("fax", parts, "{b}-{c}") != synth_forms.write_phone("phone", parts, "{b}-{c}")


def test_same_seed_same_bytes_in_any_process(made: list[Document]) -> None:
    code = (
        "import hashlib\nfrom chaffinch.deid import notes\n"
        "docs = notes(4, 2, seed=5, names='train', style='varied')\n"
        "print(hashlib.sha256(repr([(d.id, d.text, d.layer(), d.meta) for d in docs]).encode()).hexdigest())"
    )
    docs = notes(4, 2, seed=5, names="train", style="varied")
    here = hashlib.sha256(repr([(d.id, d.text, d.layer(), d.meta) for d in docs]).encode()).hexdigest()
    for salt in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": salt}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == here
    assert notes(3, EACH, seed=SEED, style="varied") == made[: 3 * EACH]
    assert notes(3, EACH, seed=SEED + 1, style="varied") != made[: 3 * EACH]


def test_the_plain_style_is_as_it_was() -> None:
    """The bytes of the plain notes before there was another style."""
    docs = notes(6, 4, seed=11) + notes(4, 3, seed=2, names="held-out", style="plain")
    digest = hashlib.sha256(repr([(d.id, d.text, d.layer(), d.meta) for d in docs]).encode()).hexdigest()
    assert digest[:16] == "efe11ba13ebd761c"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"style": "odd"}, "style must be one of plain, varied, got 'odd'"),
        ({"style": "varied", "sites": "ax"}, "sites must be different ones of a, b, c, d, e, f, got a, x"),
        ({"style": "varied", "sites": "aa"}, "sites must be different ones"),
        ({"style": "varied", "sites": ()}, "got none"),
        ({"sites": "a"}, 'only the style "varied" has sites'),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        notes(1, **options)


def test_names_of_fields_are_printable() -> None:
    for field in personas.table("varied/fields")["field"].values():
        assert all(set(label) <= set(string.printable) for label in field["labels"])

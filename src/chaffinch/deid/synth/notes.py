"""Generated clinical notes with exact gold spans: several notes for each invented patient.

    templates + a patient  →  lines with slots filled  →  one text and its spans

All text comes from the packaged templates, and every slot that identifies someone becomes a span. People appear with
cues ("Dr.", "Patient:") and without. The two halves of the names, train and held-out, share no name and no look-alike
(drug brands, eponyms, services), and each has a fifth of the templates that the other has not. The held-out half is
thus as new to a tagger trained on the other as another hospital.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, TypeAlias, get_args

import numpy as np

from chaffinch.checks import check_choice
from chaffinch.deid.synth import personas
from chaffinch.deid.synth.personas import Half, Lists, Patient, Person, pick
from chaffinch.deid.synth.varied import LABELS as I2B2_LABELS
from chaffinch.deid.synth.varied import SITES, draw_varied_notes
from chaffinch.errors import ConfigError
from chaffinch.text import Document, Span

Style: TypeAlias = Literal["plain", "varied"]

LABELS = (
    "PATIENT", "FAMILY", "DOCTOR", "HOSPITAL", "CITY", "STREET", "PHONE", "ID", "EMAIL", "DATE", "AGE", "PROFESSION"
)  # fmt: skip

_SLOT = re.compile(r"\{(\w+)(?::(\w+))?\}")
_FACTS = {
    "mrn": "ID",
    "account": "ID",
    "email": "EMAIL",
    "city": "CITY",
    "street": "STREET",
    "profession": "PROFESSION",
}
_PRONOUNS = {
    True: {"he": "she", "his": "her", "him": "her", "man": "woman"},
    False: {"he": "he", "his": "his", "him": "him", "man": "man"},
}


def notes(
    patients: int,
    notes_each: int = 5,
    *,
    seed: int = 0,
    names: Half = "all",
    style: Style = "plain",
    sites: Sequence[str] | None = None,
    hidden: frozenset[str] = frozenset(),
) -> list[Document]:
    """Generate `notes_each` notes per patient with identifiers in layer "gold"; ConfigError for an unfit setting.

    `group` is the patient, and ids are p0001-01, p0001-02, …; `meta` has the kind of note and its date. Patients keep
    their notes if the number of patients grows. `names` draws from one of two disjoint halves, or from all. The style
    "varied" has far more layouts and written forms, and the labels of i2b2 2014 (`varied.LABELS`); its patients belong
    to the `sites` in turn (by default all of `varied.SITES`), which share no template. Names and cities of varied notes
    contain no `hidden` word (`languages.hidden_words`).

    >>> first, second = notes(1, 2, seed=7)
    >>> first.id, first.group == second.group
    ('p0001-01', True)
    """
    for setting, value, least in (("patients", patients, 1), ("notes_each", notes_each, 1), ("seed", seed, 0)):
        if value < least:
            raise ConfigError(f"{setting} must be at least {least}, got {value}")
    check_choice(names, "names", get_args(Half))
    check_choice(style, "style", get_args(Style))
    if style == "varied":
        return draw_varied_notes(patients, notes_each, seed=seed, names=names, sites=_check_sites(sites), hidden=hidden)
    if sites is not None:
        raise ConfigError('only the style "varied" has sites: give style="varied", or no sites')
    if hidden:
        raise ConfigError('only the style "varied" can hide words: give style="varied", or hide none')
    documents = []
    for number in range(1, patients + 1):
        rng = np.random.default_rng([seed, number])
        patient = personas.draw_patient(number, notes_each, names, rng)
        documents += [_note(patient, index, personas.lists(names), rng) for index in range(notes_each)]
    return documents


def labels(style: Style) -> tuple[str, ...]:
    """Return the labels that notes of a style have."""
    return I2B2_LABELS if style == "varied" else LABELS


def _check_sites(sites: Sequence[str] | None) -> Sequence[str]:
    """Return the sites, all for None; raise ConfigError if one is unknown or repeated, or there are none."""
    if sites is None:
        return SITES
    unknown = [site for site in sites if site not in SITES]
    if unknown or not sites or len(set(sites)) < len(sites):
        raise ConfigError(f"sites must be different ones of {', '.join(SITES)}, got {', '.join(sites) or 'none'}")
    return sites


@dataclass(frozen=True, slots=True)
class _Scene:
    """The facts of one note: the patient, its dates and its author."""

    patient: Patient
    days: dict[str, date]
    author: Person
    lists: Lists

    def cast(self, rng: np.random.Generator) -> dict[str, Person]:
        """Draw the person of each role for one sentence: patient, family, author, two doctors and a nurse."""
        others = [person for person in self.patient.clinicians if person != self.author]
        doctor = pick(rng, others)
        second = [person for person in others if person != doctor] or [self.author]
        people = {"patient": self.patient.person, "family": pick(rng, self.patient.family), "author": self.author}
        return {**people, "doctor": doctor, "doctor2": pick(rng, second), "nurse": pick(rng, others)}


class _Page:
    """A text under construction, with the spans of its filled slots."""

    def __init__(self, scene: _Scene, rng: np.random.Generator) -> None:
        """Start an empty text for a scene, with random choices from `rng`."""
        self.scene, self.rng = scene, rng
        self.parts: list[str] = []
        self.spans: list[Span] = []
        self.length = 0

    def add(self, template: str) -> None:
        """Append a template with its slots filled for a newly drawn cast, identifiers as spans."""
        cast = self.scene.cast(self.rng)
        end = 0
        for slot in _SLOT.finditer(template):
            self._put(template[end : slot.start()])
            self._put(*_fill(slot[1], slot[2] or "any", self.scene, cast, self.rng))
            end = slot.end()
        self._put(template[end:])

    def _put(self, text: str, label: str = "") -> None:
        """Append text, with a span over it if there is a label."""
        if label:
            self.spans.append(Span(self.length, self.length + len(text), label))
        self.parts.append(text)
        self.length += len(text)


def _fill(slot: str, form: str, scene: _Scene, cast: dict[str, Person], rng: np.random.Generator) -> tuple[str, str]:
    """Return (text, label) for a slot; the label is "" for words that identify nobody."""
    patient, forms = scene.patient, personas.table("forms")
    if slot in cast:
        return personas.write_name(cast[slot], form, rng), cast[slot].label
    if slot in scene.days:
        return personas.write_date(scene.days[slot], form, rng), "DATE"
    if slot in _FACTS:
        return patient.facts[slot], _FACTS[slot]
    if slot == "hospital":
        name = patient.facts["hospital"]
        return personas.short_hospital(name, rng) if form == "short" else name, "HOSPITAL"
    if slot in ("phone", "ext"):
        return pick(rng, forms["phone"]["any" if slot == "phone" else "extension"]).format(**patient.phone), "PHONE"
    if slot == "accession":
        return personas.fill_digits(pick(rng, forms["pattern"]["accession"]), rng), "ID"
    if slot == "age":
        years = (scene.days["visit"] - patient.born).days // 365.2425
        return str(int(rng.integers(60, 96)) if form == "old" else int(years)), "AGE"
    return _word(slot, scene, cast, rng), ""


def _word(slot: str, scene: _Scene, cast: dict[str, Person], rng: np.random.Generator) -> str:
    """Return the text for a slot that identifies nobody: pronoun, title, kin, weeks, a listed word or a number."""
    female = scene.patient.person.female
    if slot.lower() in _PRONOUNS[female]:
        word = _PRONOUNS[female][slot.lower()]
        return word.capitalize() if slot[0].isupper() else word
    if slot == "Mr":
        return pick(rng, ("Mrs.", "Ms.", "Ms")) if female else pick(rng, ("Mr.", "Mr"))
    if slot in ("kin", "Kin"):
        return cast["family"].kin if slot == "kin" else cast["family"].kin.capitalize()
    if slot == "weeks":
        return str(max(1, (scene.days["visit"] - scene.days["prev"]).days // 7))
    if slot in scene.lists.words:
        return pick(rng, scene.lists.words[slot])
    return personas.fill_digits(pick(rng, personas.table("words")["number"][slot]), rng)


def _note(patient: Patient, index: int, lists: Lists, rng: np.random.Generator) -> Document:
    """Write the note of a patient's visit `index` (from 0): head, sections and foot of a drawn kind, as a document."""
    prev, visit, following = patient.visits[index : index + 3]
    days = {"prev": prev, "visit": visit, "next": following, "born": patient.born, "event": patient.event}
    days["admit"] = visit - timedelta(int(rng.integers(2, 7)))
    name = pick(rng, list(personas.table("kinds")["kind"]))
    kind = personas.table("kinds")["kind"][name]
    page = _Page(_Scene(patient, days, pick(rng, patient.clinicians), lists), rng)
    title = pick(rng, kind["titles"])
    above = bool(rng.integers(2)) or kind["head"] == "letterheads"
    page.add(title + "\n\n" if title and above else "")
    page.add(pick(rng, lists.templates[kind["head"]]) + "\n\n")
    page.add(title + "\n\n" if title and not above else "")
    used: set[str] = set()
    gap = pick(rng, ("\n", "\n\n"))
    for section in pick(rng, kind["orders"]):
        _section(page, section, used)
        page.add(gap)
    page.add("\n" + pick(rng, lists.templates[kind["foot"]]) + "\n")
    meta = {"kind": name, "date": visit.isoformat()}
    return Document.make(
        "".join(page.parts), id=f"{patient.key}-{index + 1:02d}", group=patient.key, meta=meta,
        layers={"gold": page.spans},
    )  # fmt: skip


def _section(page: _Page, name: str, used: set[str]) -> None:
    """Append a section's title and sentences, unused ones first, as prose or list; add those to `used`."""
    rng, section = page.rng, personas.table("kinds")["section"][name]
    least, most = section["count"]
    shape = pick(rng, ("prose", "list")) if section["shape"] == "either" else section["shape"]
    bullet = pick(rng, ("", "", "- ", "* ", "  "))
    title = pick(rng, section["titles"])
    page.add(title + pick(rng, ("\n", " ") if shape == "prose" else ("\n",)) if title else "")
    for _ in range(int(rng.integers(least, most + 1))):
        pool = page.scene.lists.templates[pick(rng, section["pools"])]
        sentence = pick(rng, [template for template in pool if template not in used] or pool)
        used.add(sentence)
        if shape == "list":
            page.add(bullet + sentence + "\n")
        else:
            page.add(sentence + (" " if sentence.endswith((".", "?")) else ". "))
    page.add("\n" if shape == "prose" else "")

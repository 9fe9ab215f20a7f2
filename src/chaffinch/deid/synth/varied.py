"""Varied notes: many layouts and written forms, all sub-types of i2b2 2014, in the styles of several sites.

    templates of a site + a patient + the habits of a house  →  lines with slots filled  →  one text and its spans

Every template belongs to one site, and a note uses templates of its site only: notes of different sites share no
template, and a model tested on sites that it was not trained on meets no line it has seen. `meta["site"]` is the site
and `meta["templates"]` the ids of the templates of a note.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from importlib.resources import files

import numpy as np

from chaffinch.deid.kinds import KINDS
from chaffinch.deid.synth import forms as synth_forms
from chaffinch.deid.synth import headers as synth_heads
from chaffinch.deid.synth import personas
from chaffinch.deid.synth.names import NameDrawer
from chaffinch.deid.synth.page import Hand, NoteBuilder, Scene
from chaffinch.deid.synth.personas import Half, Person, pick
from chaffinch.text import Document

SITES = ("a", "b", "c", "d", "e", "f")
CHARTS = 0.6  # the share of notes that are whole charts; the others are composed of parts
_PEOPLE_AND_DAYS = ("PATIENT", "FAMILY", "DOCTOR", "DATE")
LABELS = tuple(name for name in KINDS if name in (*_PEOPLE_AND_DAYS, *synth_forms.LABELS.values()))

_KIN = {True: ("daughter", "sister", "niece", "mother", "aunt"), False: ("son", "brother", "nephew", "father", "uncle")}
_ENDS = ("letterheads", "signatures", "closings")
# How many different values of a slot the notes of a patient use.
_BAGS = {
    "mrn": 1, "ssn": 1, "ssn:part": 1, "plan": 1, "account": 2, "license": 2, "vehicle": 1, "serial": 2, "bioid": 1,
    "idnum": 5, "accession": 2, "ip": 2, "url": 2, "hospital": 3, "hospital:bare": 2, "org": 3, "street": 2, "city": 3,
    "state": 2, "state:name": 2, "country": 2, "zip": 2, "place": 2, "room": 3, "dept": 3, "dept:field": 2,
    "profession": 3, "industry": 2,
}  # fmt: skip


@cache
def templates() -> Mapping[str, Mapping[str, str]]:
    """Return {pool: {id: template}} of all templates dealt to sites; an id is the pool and a hash of the template."""
    folder = files("chaffinch.deid.synth") / "templates" / "varied" / "sentences"
    new = sorted(file.name.removesuffix(".txt") for file in folder.iterdir() if file.name.endswith(".txt"))
    pools = {name: pool for name, pool in personas.pools().items() if name not in (*_ENDS, "headers")}
    pools |= {name: pools.get(name, ()) + personas.lines(f"varied/sentences/{name}") for name in new}
    pools |= {name: personas.lines(name) + personas.lines(f"varied/{name}") for name in _ENDS}
    pools["heads"] = personas.lines("headers") + personas.lines("varied/heads")
    pools["fields"] = tuple(layout["id"] for layout in synth_heads.layouts())
    return {name: _by_id(name, pool) for name, pool in pools.items()}


def _by_id(name: str, pool: Iterable[str]) -> dict[str, str]:
    """Return the templates of a pool by id, in the order of their hashes."""
    return {f"{name}/{_hash(text)[:6]}": text for text in sorted(pool, key=_hash)}


@cache
def templates_of(site: str) -> Mapping[str, Mapping[str, str]]:
    """Return a site's templates by pool and id: a sixth of each pool and one writer's charts; ValueError if unknown."""
    start = SITES.index(site)
    dealt = {name: dict(list(pool.items())[start :: len(SITES)]) for name, pool in templates().items()}
    return {**dealt, "charts": _by_id("charts", personas.pages(f"varied/charts/{site}"))}


def _hash(text: str) -> str:
    """Return a text's SHA-256 in hex, which is the same in every run."""
    return hashlib.sha256(text.encode()).hexdigest()


def draw_varied_notes(
    patients: int,
    notes_each: int,
    *,
    seed: int,
    names: Half,
    sites: Sequence[str],
    hidden: frozenset[str] = frozenset(),
) -> list[Document]:
    """Generate varied notes of patients of the sites in turn; all notes of a patient are of one site."""
    documents = []
    for number in range(1, patients + 1):
        rng = np.random.default_rng([seed, number, len(SITES)])
        site = sites[(number - 1) % len(sites)]
        scene, visits = _story(notes_each, names, rng, hidden)
        for index in range(notes_each):
            prev, visit, following = visits[index : index + 3]
            days = {
                "prev": prev,
                "visit": visit,
                "next": following,
                "admit": visit - timedelta(int(rng.integers(2, 7))),
            }
            author = pick(rng, scene.cast["doctor"])
            cast = {**scene.cast, "author": (author,)}
            of_note = Scene(cast, {**scene.days, **days}, scene.bags, scene.phones, scene.words, scene.habits)
            documents.append(_note(NoteBuilder(of_note, _hand(rng), rng), site, f"p{number:04d}", index + 1))
    return documents


def _story(
    notes: int, half: Half, rng: np.random.Generator, hidden: frozenset[str] = frozenset()
) -> tuple[Scene, list[date]]:
    """Draw the scene that all notes of a patient share, and the days of `notes` + 2 visits."""
    names = NameDrawer(half, rng, hidden)
    maker = synth_forms.Maker(names, rng)
    cast = _people(names, rng)
    visits = [date(int(rng.integers(1975, 2026)), 1, 1) + timedelta(int(rng.integers(365)))]
    for _ in range(notes + 1):
        visits.append(visits[-1] + timedelta(int(rng.integers(8, 15 if rng.integers(3) == 0 else 200))))
    event = visits[0] - timedelta(int(rng.integers(30, 365 * 9)))
    days = {"event": event, "born": event - timedelta(int(rng.integers(365 * 2, 365 * 92)))}
    bags = {slot: tuple(maker.make(slot) for _ in range(size)) for slot, size in _BAGS.items()}
    staff = cast["doctor"] + cast["nurse"]
    bags["username"] = tuple(maker.username(pick(rng, staff)) for _ in range(3))
    bags["email"] = tuple(maker.email(pick(rng, [*cast["patient"], *staff])) for _ in range(2))
    words = {**personas.lists(half).words}
    words |= {key: tuple(text.split(";")) for key, text in personas.table("varied/words")["word"].items()}
    phones = tuple(_phone(rng) for _ in range(4))
    return Scene(cast, days, bags, phones, words, _habits(rng)), visits


def _people(names: NameDrawer, rng: np.random.Generator) -> dict[str, tuple[Person, ...]]:
    """Draw a patient with one to three relatives, three to six doctors and two nurses, by role."""
    female = bool(rng.integers(2))
    patient = names.person(female, "PATIENT")
    family = []
    for index in range(int(rng.integers(1, 4))):
        theirs = bool(rng.integers(2)) if index else not female
        kin = pick(rng, _KIN[theirs]) if index else "husband" if female else "wife"
        family.append(names.person(theirs, "FAMILY", last=patient.last if rng.integers(3) else None, kin=kin))
    doctors = tuple(names.person(bool(rng.integers(2)), "DOCTOR") for _ in range(int(rng.integers(3, 7))))
    nurses = tuple(names.person(bool(rng.integers(2)), "DOCTOR") for _ in range(2))
    return {"patient": (patient,), "family": tuple(family), "doctor": doctors, "nurse": nurses}


def _phone(rng: np.random.Generator) -> dict[str, str]:
    """Draw the parts of a phone number: area, exchange, line, extension."""
    parts = {"a": "[2345679]##", "b": "[23456789]##", "c": "####", "e": "[123456789]###", "x": "[123456789]"}
    return {key: personas.fill_digits(pattern, rng) for key, pattern in parts.items()}


def _habits(rng: np.random.Generator) -> dict[str, tuple[str, ...]]:
    """Draw an institution's {"KIND:FORM": three patterns, perhaps equal} for persons, dates and phones."""
    habits = {}
    for kind in ("person", "date", "phone"):
        for form, all_of in synth_forms.forms(kind).items():
            habits[f"{kind}:{form}"] = tuple(pick(rng, all_of) for _ in range(3))
    return habits


def _hand(rng: np.random.Generator) -> Hand:
    """Draw the typing style of a note: letter case, rate of slips, and width of lines (0: not broken)."""
    case = "upper" if rng.integers(30) == 0 else "lower" if rng.integers(40) == 0 else ""
    slips = pick(rng, (0.0, 0.0, 0.0, 0.01, 0.04))
    return Hand(case, slips, int(rng.integers(60, 100)) if rng.integers(3) == 0 else 0)


def _note(page: NoteBuilder, site: str, key: str, number: int) -> Document:
    """Write one note, a whole chart or a composed one, as document KEY-NUMBER with gold spans and its templates."""
    pools = templates_of(site)
    if page.rng.random() < CHARTS:
        name = "chart"
        _write_end(page, pools, "charts")
    else:
        name = _compose(page, pools)
    meta = {"kind": name, "date": page.scene.days["visit"].isoformat(), "site": site, "templates": sorted(page.used)}
    return Document.make(page.text(), id=f"{key}-{number:02d}", group=key, meta=meta, layers={"gold": page.spans})


def _compose(page: NoteBuilder, pools: Mapping[str, Mapping[str, str]]) -> str:
    """Write a note of a drawn kind: perhaps a title, a header, sections and a closing; return the kind's name."""
    rng = page.rng
    name: str = pick(rng, list(personas.table("varied/kinds")["kind"]))
    kind = personas.table("varied/kinds")["kind"][name]
    title, above = pick(rng, kind["titles"]), bool(rng.integers(2))
    page.add(f"{title}\n\n" if title and above else "")
    _write_end(page, pools, pick(rng, kind["heads"]))
    page.add(f"{title}\n\n" if title and not above else "")
    gap = pick(rng, ("\n", "\n\n"))
    for section in pick(rng, kind["orders"]):
        _write_section(page, pools, section)
        page.put(gap)
    _write_end(page, pools, pick(rng, kind["feet"]))
    return name


def _write_end(page: NoteBuilder, pools: Mapping[str, Mapping[str, str]], pool: str) -> None:
    """Append one template of a pool (header, closing or chart) to the page; nothing for the pool "none"."""
    if pool == "none":
        return
    identity, text = pick(page.rng, list(pools[pool].items()))
    page.used.append(identity)
    if pool == "fields":
        synth_heads.write_head(page, next(layout for layout in synth_heads.layouts() if layout["id"] == text))
    else:
        page.add(text)
    page.put("\n\n" if page.rng.integers(4) else "\n")


def _write_section(page: NoteBuilder, pools: Mapping[str, Mapping[str, str]], name: str) -> None:
    """Append a section to the page: a title, and sentences not yet used in this note, as prose or as a list."""
    rng, section = page.rng, personas.table("varied/kinds")["section"][name]
    least, most = section["count"]
    shape = pick(rng, ("prose", "list")) if section["shape"] == "either" else section["shape"]
    bullet = pick(rng, ("", "", "- ", "* ", "  ", "#. ", "• "))
    title = pick(rng, section["titles"])
    page.add(title + pick(rng, ("\n", " ") if shape == "prose" else ("\n",)) if title else "")
    for number in range(int(rng.integers(least, most + 1))):
        pool = pools[pick(rng, section["pools"])]
        identity = pick(rng, [key for key in pool if key not in page.used] or list(pool))
        page.used.append(identity)
        if shape == "list":
            page.put(bullet.replace("#", str(number + 1)))
            page.add(pool[identity])
            page.put("\n")
        else:
            page.add(pool[identity])
            page.put(" " if page.last() in ".?!:" else ". ")
    page.put("\n" if shape == "prose" else "")

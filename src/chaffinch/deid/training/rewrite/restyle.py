"""Write notes in another style: small letters, capitals, dictated, scanned, with other lines, with fewer marks.

A style changes characters, never what identifies somebody: spans move along.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import numpy as np

from chaffinch.deid.training.rewrite.edits import Edit, Marked
from chaffinch.deid.training.rewrite.spoken import say_date, say_number

Style: TypeAlias = Callable[[Marked, np.random.Generator], Marked]

# What a scanner takes characters for; more rarely, it loses blanks and letters and breaks words.
MISREAD: Final = {
    "O": "0", "0": "O", "l": "1", "1": "l", "I": "l", "5": "S", "S": "5", "8": "B", "B": "8", "e": "c", "c": "e",
    "m": "rn", "h": "b", "n": "ri", "u": "ii", "g": "q", ",": ".", ".": ",", ":": ";", "a": "o", "6": "b", "2": "Z",
    "t": "f", "/": "l",
}  # fmt: skip
_RATES = (0.008, 0.02)
_WIDTHS = (40, 60, 80)
_SAID = {".": "period", ",": "comma", ":": "colon", "\n": "new line"}
_DICTATED = re.compile(r"\d+|[^\w\s]|_|[\r\n]+")
_MARKS = re.compile(r"[.,;:()\[\]]")
_BREAK = re.compile(r"(?<=\S)[ \t]*\r?\n[ \t]*(?=\S)")
_BLANKS = re.compile(r"[ \t]{2,}")


def lower(note: Marked, _: np.random.Generator) -> Marked:
    """Return the note in small letters; unchanged if that changes its length."""
    text = note.text.lower()
    return Marked(text, note.spans) if len(text) == len(note.text) else note


def upper(note: Marked, _: np.random.Generator) -> Marked:
    """Return the note in capitals; unchanged if that changes its length."""
    text = note.text.upper()
    return Marked(text, note.spans) if len(text) == len(note.text) else note


def dictate(note: Marked, rng: np.random.Generator) -> Marked:
    """Return a note as dictated: lower case, one line, numbers in words, no marks but some in words (dot, comma)."""
    said = 0.5 if rng.integers(3) == 0 else 0.0
    dates: list[Edit] = []
    for span in note.spans:
        spoken = say_date(note.text[span.start : span.end], rng) if span.label == "DATE" else None
        if spoken:
            dates.append(Edit(span.start, span.end, spoken))
    places = {place for edit in dates for place in range(edit.start, edit.end)}
    edits = [
        Edit(*found.span(), _say(note, found, rng, said))
        for found in _DICTATED.finditer(note.text)
        if found.start() not in places
    ]
    return lower(_squeeze(note.apply_edits(sorted([*dates, *edits]))), rng)


def _say(note: Marked, found: re.Match[str], rng: np.random.Generator, said: float) -> str:
    """Return what a speaker says for a number, mark or line end: words between blanks, a blank, or nothing."""
    sign, text = found[0], note.text
    before, after = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
    if sign[0].isdigit():
        return f" {say_number(sign, rng)} " if sign.isascii() else sign
    if sign in "'’":
        return ""
    if sign in _SAID and rng.random() < said and not note.inside(found.start()):
        return f" {_SAID[sign]} "
    if sign == "." and before.isdigit() and after.isdigit():
        return " point "
    if sign == "@":
        return " at "
    return " dot " if sign == "." and before.isalpha() and after.isalpha() else " "


def scan(note: Marked, rng: np.random.Generator) -> Marked:
    """Return a note as a scanner reads it: characters taken for others, blanks and letters lost, words broken."""
    rate = float(rng.choice(_RATES))
    edits = []
    for place in np.flatnonzero(rng.random(len(note.text)) < 1.25 * rate).tolist():
        sign, chance = note.text[place], float(rng.random()) * 1.25
        if chance < 1.0:
            new = MISREAD.get(sign, sign)
        elif sign == " ":
            new = ""
        elif sign.isalpha() and note.text[place - 1 : place].isalpha():
            new = str(rng.choice([" ", "-\n", ""])) + (sign if chance < 1.2 else "")
        else:
            new = sign
        edits.append(Edit(place, place + 1, new))
    return note.apply_edits(edits)


def reflow(note: Marked, rng: np.random.Generator) -> Marked:
    """Return a note with other lines, by chance: most joined, broken at a width, or without empty lines."""
    way = int(rng.integers(3))
    if way == 0:
        breaks = _BREAK.finditer(note.text)
        return note.apply_edits([Edit(*found.span(), " ") for found in breaks if rng.random() < 0.8])
    if way == 2:
        lines = note.apply_edits([Edit(*found.span(), "\n") for found in re.finditer(r"\n{2,}", note.text)])
        return _squeeze(lines)
    width, at, edits = int(rng.choice(_WIDTHS)), 0, []
    for place, sign in enumerate(note.text):
        if sign == "\n":
            at = place + 1
        elif sign == " " and place - at > width:
            edits.append(Edit(place, place + 1, "\n"))
            at = place + 1
    return note.apply_edits(edits)


def drop_marks(note: Marked, rng: np.random.Generator) -> Marked:
    """Return a note without about 70 % of the punctuation marks outside identifiers."""
    edits = []
    for found in _MARKS.finditer(note.text):
        if rng.random() < 0.7 and not note.inside(found.start()):
            spaced = note.text[found.end() : found.end() + 1].isspace()
            edits.append(Edit(*found.span(), "" if spaced else " "))
    return note.apply_edits(edits)


def lower_terse(note: Marked, rng: np.random.Generator) -> Marked:
    """Return a note in small letters without most punctuation marks."""
    return lower(drop_marks(note, rng), rng)


STYLES: Final[Mapping[Style, float]] = {  # how often each is drawn among them
    lower: 0.15, lower_terse: 0.10, upper: 0.17, dictate: 0.18, scan: 0.16, reflow: 0.16, drop_marks: 0.08,
}  # fmt: skip


def restyle(note: Marked, rng: np.random.Generator, share: float) -> Marked:
    """Return the note in a style drawn at random, with the chance `share`; else unchanged."""
    if rng.random() >= share:
        return note
    styles = list(STYLES)
    return styles[int(rng.choice(len(styles), p=list(STYLES.values())))](note, rng)


def _squeeze(note: Marked) -> Marked:
    """Return the note with one blank in place of several."""
    return note.apply_edits([Edit(*found.span(), " ") for found in _BLANKS.finditer(note.text)])

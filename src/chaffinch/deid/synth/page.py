"""The builder of varied notes: fills slots, makes typing errors, records exact spans and wraps lines.

All text goes through `NoteBuilder.put`, which counts the characters written; so spans are exact whatever happened to
the text before. Two adjacent identifiers are two spans.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from chaffinch.deid.synth import forms as synth_forms
from chaffinch.deid.synth import personas
from chaffinch.deid.synth.forms import LABELS, forms
from chaffinch.deid.synth.personas import Person, pick
from chaffinch.text import Span
from chaffinch.text.tokens import ABBREVIATIONS

_SLOT = re.compile(r"\{(\w+)(?::(\w+))?\}")
_CHOICE = re.compile(r"<([^<>{}|]*(?:\|[^<>{}|]*)+)>")
_WORD = re.compile(r"[a-z]{5,}")
_GLUED = re.compile(r"^YO\b")  # after an age: the token of "60yo" ends before its unit, that of "60YO" does not
_PRONOUNS = {
    True: {"he": "she", "his": "her", "him": "her", "man": "woman", "sex": "F"},
    False: {"he": "he", "his": "his", "him": "him", "man": "man", "sex": "M"},
}


@dataclass(frozen=True, slots=True)
class Scene:
    """The facts of one note, and the habits of the institution that wrote it."""

    cast: Mapping[str, tuple[Person, ...]]  # patient, family, author, doctor, nurse
    days: Mapping[str, date]
    bags: Mapping[str, tuple[str, ...]]  # the values that a slot may have; "hospital:bare" is a form of a slot
    phones: tuple[Mapping[str, str], ...]
    words: Mapping[str, tuple[str, ...]]
    habits: Mapping[str, tuple[str, ...]]  # the forms that the institution prefers, by "date:any", "person:full", …


@dataclass(frozen=True, slots=True)
class Hand:
    """The typing style of a note: its case, the rate of typing errors, and the width of a line."""

    case: str = ""  # "", "upper" or "lower"
    slips: float = 0.0
    width: int = 0  # 0: lines are not wrapped


class NoteBuilder:
    """A text under construction, its spans, and the ids of its templates."""

    def __init__(self, scene: Scene, hand: Hand, rng: np.random.Generator) -> None:
        """Start an empty text for a scene in a typing style, with random choices from `rng`."""
        self.scene, self.hand, self.rng = scene, hand, rng
        self.parts: list[str] = []
        self.spans: list[Span] = []
        self.used: list[str] = []
        self.length = 0

    def add(self, template: str) -> None:
        """Append a template, its choices drawn and slots filled, "a" made "an" where needed, identifiers as spans."""
        cast = self._cast()
        template = _CHOICE.sub(lambda match: pick(self.rng, match[1].split("|")), template)
        end = 0
        for slot in _SLOT.finditer(template):
            text, label = self._fill(slot[1], slot[2] or "any", cast)
            before = template[end : slot.start()]
            an = "n" if re.search(r"\ba $", before) and text[:1].lower() in "aeiou" else ""
            self.put(before[:-1] + "n " if an else before)
            self.put(text, label)
            end = slot.end()
        self.put(template[end:])

    def put(self, text: str, label: str = "") -> None:
        """Append text with the hand's slips and case, labelled if `label`; a full stop may join an abbreviation."""
        if not text:
            return
        if label in ("", "PROFESSION") and self.hand.slips:
            text = _WORD.sub(self._slip, text)
        if self.hand.case:
            text = _GLUED.sub("yo", text.upper()) if self.hand.case == "upper" else text.lower()
        if not label and text.startswith(".") and self._ends_in_abbreviation():
            self.spans[-1] = Span(self.spans[-1].start, self.length + 1, self.spans[-1].label)
        if label:
            self.spans.append(Span(self.length, self.length + len(text), label))
        self.parts.append(text)
        self.length += len(text)

    def _ends_in_abbreviation(self) -> bool:
        """Tell whether the text ends in an identifier with an abbreviation, which keeps its full stop: "3 Aug."."""
        ended = bool(self.spans) and self.spans[-1].end == self.length
        return ended and re.split(r"[\s-]", self.parts[-1])[-1] in ABBREVIATIONS

    def last(self) -> str:
        """Return the last character of the text, or ""."""
        return self.parts[-1][-1] if self.parts else ""

    def text(self) -> str:
        """Return the text, wrapped to the width of a line; no identifier is broken."""
        return wrap_lines("".join(self.parts), self.spans, self.hand.width) if self.hand.width else "".join(self.parts)

    def _slip(self, word: re.Match[str]) -> str:
        """Return the matched word; at the hand's rate with two letters swapped, one dropped or one doubled."""
        text = word[0]
        if self.rng.random() >= self.hand.slips:
            return text
        spot = int(self.rng.integers(1, len(text) - 1))
        swapped = text[:spot] + text[spot + 1] + text[spot] + text[spot + 2 :]
        return pick(self.rng, (swapped, text[:spot] + text[spot + 1 :], text[:spot] + text[spot] + text[spot:]))

    def _cast(self) -> dict[str, Person]:
        """Choose the person of each role for one sentence; "doctor" and "doctor2" differ."""
        cast = {role: pick(self.rng, people) for role, people in self.scene.cast.items()}
        others = [person for person in self.scene.cast["doctor"] if person != cast["doctor"]]
        return {**cast, "doctor2": pick(self.rng, others)}

    def _form(self, kind: str, form: str) -> str:
        """Draw a written form of a kind: three times of four one that the institution prefers."""
        preferred = self.scene.habits.get(f"{kind}:{form}")
        chosen: str = pick(self.rng, preferred if preferred and self.rng.integers(4) else forms(kind)[form])
        return chosen

    def _fill(self, slot: str, form: str, cast: Mapping[str, Person]) -> tuple[str, str]:
        """Return (text, label) for a slot; the label is "" for words that identify nobody."""
        if slot in cast:
            kind, _, case = form.partition("_")
            name = synth_forms.write_name(cast[slot], self._form("person", kind))
            return _change_case(name, case), cast[slot].label
        if slot in self.scene.days:
            return synth_forms.write_day(self.scene.days[slot], self._form("date", form), self.rng), "DATE"
        if slot in ("phone", "fax", "pager", "ext"):
            pattern = self._form("phone", "any" if slot in ("phone", "fax") else "extension")
            return synth_forms.write_phone(slot, pick(self.rng, self.scene.phones), pattern), LABELS[slot]
        if slot == "age":
            years = (self.scene.days["visit"] - self.scene.days["born"]).days // 365.2425
            return synth_forms.write_age(int(years), form, self.rng), "AGE"
        if slot in LABELS:
            return self._fact(slot, form), LABELS[slot]
        return self._word(slot, cast), ""

    def _fact(self, slot: str, form: str) -> str:
        """Draw a value of the scene for a labelled slot, of "slot:form" if there is one, else changed to the form."""
        if f"{slot}:{form}" in self.scene.bags:
            return pick(self.rng, self.scene.bags[f"{slot}:{form}"])
        fact = pick(self.rng, self.scene.bags[slot])
        return personas.short_hospital(fact, self.rng) if form == "short" else _change_case(fact, form)

    def _word(self, slot: str, cast: Mapping[str, Person]) -> str:
        """Return the text for a slot that identifies nobody: pronoun, title, kin, weeks, a listed word, a number."""
        pronouns = _PRONOUNS[cast["patient"].female]
        if slot.lower() in pronouns:
            return pronouns[slot.lower()].capitalize() if slot[0].isupper() else pronouns[slot]
        if slot == "Mr":
            return pick(self.rng, ("Mrs.", "Ms.", "Ms", "Miss", "Mrs") if cast["patient"].female else ("Mr.", "Mr"))
        if slot in ("kin", "Kin"):
            return _change_case(cast["family"].kin, "cap" if slot == "Kin" else "")
        if slot == "weeks":
            return str(max(1, (self.scene.days["visit"] - self.scene.days["prev"]).days // 7))
        if slot in self.scene.words:
            return pick(self.rng, self.scene.words[slot])
        numbers = personas.table("varied/words")["number"] | personas.table("words")["number"]
        return personas.fill_digits(pick(self.rng, numbers[slot]), self.rng)


def _change_case(text: str, case: str) -> str:
    """Return the text in capitals, in small letters or with a capital first letter; unchanged for any other case."""
    if case == "cap":
        return text[:1].upper() + text[1:]
    return text.upper() if case == "upper" else text.lower() if case == "lower" else text


def wrap_lines(text: str, spans: Sequence[Span], width: int) -> str:
    """Wrap long lines by turning blanks outside the spans into line ends; offsets stay the same.

    >>> wrap_lines("one two three", [], 8)
    'one two\\nthree'
    """
    inside = np.zeros(len(text) + 1, bool)
    for span in spans:
        inside[span.start : span.end] = True
    chars, start, blank = list(text), 0, -1
    for offset, char in enumerate(text):
        if char == "\n":
            start, blank = offset + 1, -1
        elif offset - start >= width and blank >= start:
            chars[blank], start = "\n", blank + 1
        if char == " " and not inside[offset] and offset > start:
            blank = offset
    return "".join(chars)

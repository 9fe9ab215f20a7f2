"""Notes with planted identifiers, and 38 ways to write an identifier that a reader of the page hardly notices."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Writer = Callable[[str], str]  # an identifier in plain characters → the same identifier in others


@dataclass(frozen=True, slots=True)
class PlantedNote:
    """A note and the offsets of its planted identifiers."""

    text: str
    planted: tuple[tuple[int, int], ...]


# Every planted identifier is between braces; so are identifiers that repeat.
TEMPLATES = (
    "Patient: {Margaret Holloway}\nMRN: {4471902}\nDate of birth: {03/14/1951}\n\n"
    "Seen by Dr. {Okonkwo} on {07/22/2019}. Mrs. "
    "{Holloway} is a {68}-year-old woman with hypertension. Call {617-555-0142} with questions.\n",
    "Discharge summary\n\nName: {Walter Jennings}   Admitted: {April 3, 2018}\n"
    "Address: {418 Maple Street}, {Springfield}\n"
    "Phone: {(413) 555-0177}\nE-mail: {walter.jennings@example.com}\n\nMr. {Jennings} was transferred by Dr. "
    "{Alice Whitfield}. Follow-up on {04/17/2018} with Dr. {Whitfield}.\n",
    "The patient, {Gloria Fitzgerald}, is {92} years old and lives at {77 Harbor Road}. Her daughter {Susan} can be "
    "reached at {508-555-0199} or {susan.f@example.org}. SSN {219-09-9999}. Discussed with Dr. {Raymond Castillo}.\n",
    "ATTENDING: {Bernard Kowalski}, MD\nDICTATED: {11/28/2020}\n\n{Theodore Lindqvist} came to clinic on "
    "{November 28, 2020}. He is a {54} year old man. Medical record number {MRN-559-1203}. His wife {Eleanor} called "
    "{781-555-0123}.\n",
    "Dear Dr. {José Martínez},\n\nThank you for referring {Renée Dupont}, born {12/05/1948}, who was seen on "
    "{02/19/2021}. Please fax results to {212-555-0164}.\n\nSincerely,\n{Harriet Blackwood}, MD\n",
    "Social history: {Leonard Hathaway} works in a mill. He lives at {1209 Chestnut Avenue}. Account number: "
    "{8830217645}. Next visit: {June 9, 2021}. Mr. {Hathaway} was seen with his son {Dominic Hathaway}.\n",
)


def plant(template: str, write: Writer) -> PlantedNote:
    """Return the note of a template, with every identifier between braces written by `write`."""
    text, planted = "", []
    for number, part in enumerate(re.split(r"[{}]", template)):
        if number % 2:
            planted.append((len(text), len(text) + len(write(part))))
            text += write(part)
        else:
            text += part
    return PlantedNote(text, tuple(planted))


def _inside(mark: str) -> Writer:
    """Return a writer that puts a mark into the middle of every word and number."""
    return lambda text: re.sub(r"\w{2,}", lambda m: m[0][: len(m[0]) // 2] + mark + m[0][len(m[0]) // 2 :], text)


def _everywhere(mark: str) -> Writer:
    """Return a writer that puts a mark between any two letters or digits."""
    return lambda text: re.sub(r"(?<=\w)(?=\w)", mark, text)


def _after(mark: str) -> Writer:
    """Return a writer that puts a mark after every letter."""
    return lambda text: re.sub(r"[^\W\d_]", lambda m: m[0] + mark, text)


def _around(before: str, after: str) -> Writer:
    return lambda text: re.sub(r"\w+", lambda m: before + m[0] + after, text)


def _blanks(blank: str) -> Writer:
    return lambda text: text.replace(" ", blank)


def _moved(letters: dict[str, int], pattern: str = r"[A-Za-z0-9]") -> Writer:
    """Return a writer that moves letters and digits to other blocks, which begin at the given code points."""

    def move(match: re.Match[str]) -> str:
        sign = match[0]
        first = "A" if sign.isupper() else "a" if sign.isalpha() else "0"
        return chr(letters[first] + ord(sign) - ord(first)) if first in letters else sign

    return lambda text: re.sub(pattern, move, text)


def _wide(text: str) -> str:
    return "".join(
        chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else "\u3000" if sign == " " else sign for sign in text
    )


def _spaced(gap: str, between: str) -> Writer:
    """Return a writer with a gap between the characters of words and long numbers, and a wider one between words."""

    def write(text: str) -> str:
        words = text.split(" ")
        long = any(len(word) > 2 for word in words)
        return between.join(gap.join(word) if len(word) > 2 else word for word in words) if long else text

    return write


def _broken(hyphen: str, end: str) -> Writer:
    """Return a writer that ends the line inside the last word of an identifier, or after its first hyphen."""

    def write(text: str) -> str:
        if re.fullmatch(r"[\d-]+-[\d-]+", text):
            return text.replace("-", "-" + end, 1)
        words = list(re.finditer(r"[^\W\d_]{5,}", text))
        if not words or "@" in text:
            return text
        cut = (words[-1].start() + words[-1].end()) // 2
        return text[:cut] + hyphen + end + text[cut:]

    return write


def _ligatures(text: str) -> str:
    for pair, sign in (("ffi", "\ufb03"), ("ff", "\ufb00"), ("fi", "\ufb01"), ("fl", "\ufb02"), ("st", "\ufb06")):
        text = text.replace(pair, sign)
    return text


VARIANTS: dict[str, Writer] = {
    "soft hyphen inside": _inside("\u00ad"),
    "soft hyphens everywhere": _everywhere("\u00ad"),
    "zero-width space inside": _inside("\u200b"),
    "zero-width spaces everywhere": _everywhere("\u200b"),
    "zero-width non-joiner": _everywhere("\u200c"),
    "zero-width joiner": _inside("\u200d"),
    "word joiner": _everywhere("\u2060"),
    "byte order mark": _inside("\ufeff"),
    "left-to-right mark": _inside("\u200e"),
    "right-to-left marks everywhere": _everywhere("\u200f"),
    "isolates around words": _around("\u2066", "\u2069"),
    "embeddings around words": _around("\u202a", "\u202c"),
    "invisible tags": _inside("\U000e0061\U000e0062"),
    "NUL inside": _inside("\x00"),
    "NUL everywhere": _everywhere("\x00"),
    "bell": _inside("\x07"),
    "delete": _everywhere("\x7f"),
    "C1 control": _inside("\x91"),
    "no-break spaces": _blanks("\u00a0"),
    "narrow no-break spaces": _blanks("\u202f"),
    "thin spaces": _blanks("\u2009"),
    "em spaces": _blanks("\u2003"),
    "ideographic spaces": _blanks("\u3000"),
    "full width": _wide,
    "full-width digits": _moved({"0": 0xFF10}),
    "bold letters and digits": _moved({"A": 0x1D400, "a": 0x1D41A, "0": 0x1D7CE}),
    "decomposed accents": lambda text: unicodedata.normalize("NFD", text),
    "an accent on every letter": _after("\u0301"),
    "every letter struck out": _after("\u0336"),
    "combining grapheme joiner": _everywhere("\u034f"),
    "variation selectors": _after("\ufe0e"),
    "ligatures": _ligatures,
    "letter-spaced": _spaced(" ", "  "),
    "letter-spaced by no-break spaces": _spaced("\u00a0", "   "),
    "tabs": _blanks("\t"),
    "double spaces": _blanks("  "),
    "line-end hyphens": _broken("-", "\n"),
    "soft line-end hyphens": _broken("\u00ad", "\r\n  "),
}  # fmt: skip


def notes(write: Writer = str) -> Iterator[PlantedNote]:
    """Yield the notes with their identifiers written by `write`."""
    return (plant(template, write) for template in TEMPLATES)

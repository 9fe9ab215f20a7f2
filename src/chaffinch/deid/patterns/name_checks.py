"""Checks that decide which words of a run of capitalised words are a person's name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from chaffinch import languages
from chaffinch.deid.detect.word_lists import WordLists

# A degree after a comma, or the beginning of one: "Ada Penn, PA-C", "Ada Penn, M." of "M.D."
_WITH_DEGREE = re.compile(r"(?<=\w),\s?(?:PA-?C|MD|M\.D\.?|DO|RN|NP|PhD)\.?$|(?<=\w),\s?[MDRP]\.$")
_GENITIVE = re.compile(r"['’]s$")
_DOTTED = re.compile(r"(?:\w\.){2,}")
_PIECE = re.compile(r"[^\s,/]+")
_WORDS = languages.words("en", "patterns/names")
_PARTICLES, _NEVER, _NOBODY, _NO_INITIALS = (
    frozenset(_WORDS[name]) for name in ("particles", "never_names", "nobody", "never_initials")
)
_FIELDS_OF_MEDICINE = _WORDS["medical_endings"]


@dataclass(frozen=True, slots=True)
class NameChecks:
    """Checks of names by word lists. Those that return offsets cut a match to its name; None rejects the match."""

    lists: WordLists

    def _name_at_start(self, text: str, *, good: bool = False) -> tuple[int, int] | None:
        """Return (start, end) of the run of names that begins a text, or None; `good` accepts any first word."""
        return _name_at_start(self.lists, text, good)

    def name_after_title(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of the name after a title, or None; nearly any word may be its first."""
        return self._name_at_start(text, good=True)

    def name_in_field(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of the name in a field; None if its first word says there is none, or is a term."""
        first = text.split(maxsplit=1)[0].strip(".,").lower()
        return None if first in _NOBODY or self.lists.is_term(first) else self._name_at_start(text, good=True)

    def probable_name(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of the run of possible names at the start of a text; None if only initials."""
        found = self._name_at_start(text)
        return found if found and any(len(word.strip(".,")) > 1 for word in text[slice(*found)].split()) else None

    def name_before_degree(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of the probable name that ends a run of capitalised words; None if there is none."""
        pieces = list(_PIECE.finditer(text))
        while pieces:
            start = pieces[0].start()
            found = self.probable_name(text[start:])
            if found is not None and start + found[1] >= len(text.rstrip(" .,")):
                return start, len(text.rstrip(" ,"))
            pieces.pop(0)
        return None

    def name_in_lists(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of a probable name whose first word is likely a name and not ordinary; else None."""
        found = self.probable_name(text)
        if found is None:
            return None
        first = text[slice(*found)].split(maxsplit=1)[0].rstrip(".,")
        return (
            found
            if "hi" in (self.lists.rate(first, "first"), self.lists.rate(first, "last"))
            and not self._is_ordinary(first)
            else None
        )

    def _is_ordinary(self, word: str) -> bool:
        """Tell whether a word is common and no likely name."""
        return self.lists.is_common(word) and "hi" not in (
            self.lists.rate(word, "first"),
            self.lists.rate(word, "last"),
        )

    def first_and_last_name(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) if a text begins with a listed first name and ends in a likely surname; else None."""
        words = text.split()
        first, last = words[0], words[-1]
        both = self.lists.rate(first, "first") == "hi" and self.lists.rate(last, "last") == "hi"
        sure = (
            self.lists.rate(first, "first") == "hi"
            and self.lists.is_name(last)
            and (both or not self.lists.is_common(first))
        )
        plain = [part for part in re.split(r"['’-]", last) if len(part) > 1]
        if not sure or last.lower() in _NEVER:
            return None
        known = self.lists.rate(last, "last") == "hi" or (plain and not any(map(self.lists.is_common, plain)))
        return self._name_at_start(text) if known and (text.isupper() or not last.isupper()) else None

    def is_first_name_and_initial(self, text: str) -> bool:
        """Tell whether the text's first word is a likely first name and no ordinary word."""
        first = text.split(maxsplit=1)[0]
        return self.lists.rate(first, "first") == "hi" and not self._is_ordinary(first)

    def is_unknown_word_and_initial(self, text: str) -> bool:
        """Tell whether the word before an initial is on no list of common words or terms: "Oriel D."."""
        return self._is_unknown_word(text.split(maxsplit=1)[0])

    def name_in_apposition(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of the name of two words after "a man,"; None if one is known to be no name."""
        pieces = list(_PIECE.finditer(text))
        first = pieces[0].group()
        known = "hi" in (self.lists.rate(first, "first"), self.lists.rate(first, "last"))
        if (
            len(pieces) < 2
            or not (known or self._is_unknown_word(first))
            or self.lists.is_term(pieces[1].group().rstrip("."))
        ):
            return None
        end = pieces[1].end()
        return pieces[0].start(), end if _is_initial(pieces[1].group()) else _trim_end(text, 0, end)

    def name_of_speaker(self, text: str) -> tuple[int, int] | None:
        """Return (0, length) if all words are unknown or a first name leads; else, or for a medical field, None."""
        words = text.split()
        known = self.lists.rate(words[0], "first") == "hi" and not self.lists.is_common(words[0])
        fits = all(self._is_unknown_word(word) for word in words) or (
            known and len(words) > 1 and not self.lists.is_term(words[-1])
        )
        return None if not fits or words[0].lower().endswith(_FIELDS_OF_MEDICINE) else (0, len(text))

    def name_alone(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of a name without a cue, if each word is a likely name, initial or unknown; else None."""
        words = text.split()
        known = all(
            self._is_unknown_word(word)
            or "hi" in (self.lists.rate(word, "first"), self.lists.rate(word, "last"))
            or _is_initial(word)
            for word in words
        )
        field = words[0].lower().endswith(_FIELDS_OF_MEDICINE)
        return self.probable_name(text) if known and not field else None

    def _is_unknown_word(self, word: str) -> bool:
        """Tell whether a capitalised word is neither common nor a clinical term."""
        plain = word.strip(".,")
        return len(plain) > 2 and plain.istitle() and not self.lists.is_common(plain) and not self.lists.is_term(plain)

    def is_initial_and_surname(self, text: str) -> bool:
        """Tell whether the text's last word is a likely surname and no common word."""
        last = text.rsplit(maxsplit=1)[-1]
        return self.lists.rate(last, "last") == "hi" and self.lists.is_name(last) and not self.lists.is_common(last)

    def is_surname_and_first_name(self, text: str) -> bool:
        """Tell whether both words of a text such as "Penn, Mary" are likely names by the lists."""
        last, first = re.split(r",\s?", text)[:2]
        first = first.split()[0]
        return (
            self.lists.rate(first, "first") == "hi"
            and self.lists.is_name(last)
            and self.lists.is_name(first)
            and self.lists.rate(last, "last") == "hi"
        )

    def whole_name(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of the listed name, also "last, first", if it fills the text; else None."""
        found = self.name_in_lists(text)
        if found is None and "," in text:
            first = text.split(",")[1].split(maxsplit=1)[0]
            found = self.probable_name(text) if self.lists.rate(first, "first") == "hi" else None
        return found if found and found[1] >= len(text.rstrip(". ")) else None

    def name_as_line(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) if 2 to 4 words begin with a likely first name and end in a surname; else None."""
        words = [word.strip(".") for word in text.split()]
        names = (
            2 <= len(words) <= 4
            and self.lists.rate(words[0], "first") == "hi"
            and self.lists.rate(words[-1], "last") == "hi"
        )
        return self.whole_name(text) if names else None

    def is_lower_case_name(self, text: str) -> bool:
        """Tell whether a word in small letters is a likely name: on the lists, or no common word."""
        return text.lower() not in _NEVER and (
            "hi" in (self.lists.rate(text, "last"), self.lists.rate(text, "first")) or not self.lists.is_common(text)
        )

    def lower_case_names(self, text: str) -> tuple[int, int] | None:
        """Return the range of the whole text if all its words are likely names, one a first name; else None."""
        words = text.replace(",", " ").split()
        return (
            (0, len(text))
            if all(self.is_lower_case_name(word) for word in words)
            and any(self.lists.rate(word, "first") for word in words)
            else None
        )

    def is_pair_of_initials(self, text: str) -> bool:
        """Tell whether two parts, as in "AB/cd", can be the initials of author and typist, and are no words."""
        return not any(self.lists.is_frequent(part) or self.lists.is_term(part) for part in text.split("/"))

    def is_initials(self, text: str) -> bool:
        """Tell whether letters may be somebody's initials, and no degree, abbreviation or frequent word."""
        plain = text.replace(".", "")
        return len(plain) >= 2 and plain not in _NO_INITIALS and (len(plain) < 3 or not self.lists.is_frequent(plain))


@lru_cache(maxsize=1 << 12)  # several patterns find the same text, and the same names recur
def _name_at_start(lists: WordLists, text: str, good: bool) -> tuple[int, int] | None:
    """Return (start, end) of the run of names that begins a text, as the method does."""
    if " " in text.partition(",")[0]:
        text = _WITH_DEGREE.sub("", text)
    start = end = -1
    after_first = False  # the word before was an initial or a first name: any capitalised word may follow
    for number, piece in enumerate(_PIECE.finditer(text)):
        word = piece.group().rstrip(".")
        plain = _GENITIVE.sub("", word)
        titled = word.istitle() and bool(lists.rate(word, "first") or lists.rate(word, "last"))
        particle = word.lower() in _PARTICLES or piece.group().lower() in _PARTICLES
        fits = (
            particle
            or (_is_initial(piece.group()) and word.isupper())
            or all(map(lists.is_name, plain.split("-")))
            or (number == 0 and good)
            or ((after_first or titled) and not lists.is_term(plain))
        )
        if word.lower() in _NEVER or not fits:
            break
        after_first = word[:1].isupper() and (
            _is_initial(piece.group()) or (lists.rate(word, "first") == "hi" and not lists.is_common(word))
        )
        start = piece.start() if start < 0 else start
        end = piece.start() + len(plain) if plain != word else piece.end()
        if plain != word:
            break
    return None if start < 0 else (start, _trim_end(text, start, end))


def _is_initial(word: str) -> bool:
    """Tell whether a word is one letter, with or without a dot, or several with dots (J.R.)."""
    return len(word.rstrip(".")) == 1 or _DOTTED.fullmatch(word) is not None


def _trim_end(text: str, start: int, end: int) -> int:
    """Return the end of a name without a trailing comma, particle, or full stop that is no initial's."""
    while end > start:
        last = text[start:end].rsplit(maxsplit=1)[-1] if text[start:end].split() else ""
        if (
            last.endswith(",")
            or text[end - 1] in " ,/"
            or (last.endswith(".") and not _is_initial(last) and last.lower() not in ("jr.", "sr."))
        ):
            end -= 1
        elif last.lower() in _PARTICLES and not last[0].isupper():
            end -= len(last)
        else:
            return end
    return end


def without_genitive(text: str) -> tuple[int, int]:
    """Return (0, end) of the text without a final 's."""
    return 0, len(_GENITIVE.sub("", text))

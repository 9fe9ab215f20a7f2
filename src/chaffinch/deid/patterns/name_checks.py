"""Which words of a run of capitalised words are a person's name: the checks of the patterns of names."""

from __future__ import annotations

import re

from chaffinch import languages
from chaffinch.deid.detect import word_lists as lexicons

# A degree after a comma, or the beginning of one: "Ada Penn, PA-C", "Ada Penn, M." of "M.D."
_WITH_DEGREE = re.compile(r"(?<=\w),\s?(?:PA-?C|MD|M\.D\.?|DO|RN|NP|PhD)\.?$|(?<=\w),\s?[MDRP]\.$")
_PIECE = re.compile(r"[^\s,/]+")
_WORDS = languages.words("en", "patterns/names")
_PARTICLES, _NEVER, _NOBODY, _NO_INITIALS = (
    frozenset(_WORDS[name]) for name in ("particles", "never_names", "nobody", "never_initials")
)
_FIELDS_OF_MEDICINE = _WORDS["medical_endings"]


def _is_initial(word: str) -> bool:
    return len(word.rstrip(".")) == 1 or re.fullmatch(r"(?:\w\.){2,}", word) is not None


def _run(text: str, *, good: bool = False) -> tuple[int, int] | None:
    """The run of names from the beginning; the first word may be any if the cue is good."""
    if " " in text.partition(",")[0]:
        text = _WITH_DEGREE.sub("", text)
    start = end = -1
    given = False  # whether the word before was an initial or a first name, after which any capitalised word may come
    for place, piece in enumerate(_PIECE.finditer(text)):
        word = piece.group().rstrip(".")
        plain = re.sub(r"['’]s$", "", word)
        titled = word.istitle() and bool(lexicons.rate(word, "first") or lexicons.rate(word, "last"))
        particle = word.lower() in _PARTICLES or piece.group().lower() in _PARTICLES
        fits = (
            particle
            or (_is_initial(piece.group()) and word.isupper())
            or all(map(lexicons.is_name, plain.split("-")))
            or (place == 0 and good)
            or ((given or titled) and not lexicons.is_term(plain))
        )
        if word.lower() in _NEVER or not fits:
            break
        given = word[:1].isupper() and (
            _is_initial(piece.group()) or (lexicons.rate(word, "first") == "hi" and not lexicons.is_common(word))
        )
        start = piece.start() if start < 0 else start
        end = piece.start() + len(plain) if plain != word else piece.end()
        if plain != word:
            break
    return None if start < 0 else (start, _tidy(text, start, end))


def _tidy(text: str, start: int, end: int) -> int:
    """The end without a comma, a particle or a full stop that is no initial's."""
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


def told(text: str) -> tuple[int, int] | None:
    """The name after a title or in a field: its first word may be any, but for words that never are names."""
    return _run(text, good=True)


def filled(text: str) -> tuple[int, int] | None:
    """The name that fills a field: any words but those that say there is none."""
    first = text.split(maxsplit=1)[0].strip(".,").lower()
    return None if first in _NOBODY or lexicons.is_term(first) else _run(text, good=True)


def likely(text: str) -> tuple[int, int] | None:
    """The name if all its words may be names, and they are more than an initial."""
    found = _run(text)
    return found if found and any(len(word.strip(".,")) > 1 for word in text[slice(*found)].split()) else None


def ending(text: str) -> tuple[int, int] | None:
    """The name at the end of a run of capitalised words, such as before a degree."""
    pieces = list(_PIECE.finditer(text))
    while pieces:
        start = pieces[0].start()
        found = likely(text[start:])
        if found is not None and start + found[1] >= len(text.rstrip(" .,")):
            return start, len(text.rstrip(" ,"))
        pieces.pop(0)
    return None


def listed(text: str) -> tuple[int, int] | None:
    """The name if its first word is a first name or a surname of the lists."""
    found = likely(text)
    if found is None:
        return None
    first = text[slice(*found)].split(maxsplit=1)[0].rstrip(".,")
    return (
        found
        if "hi" in (lexicons.rate(first, "first"), lexicons.rate(first, "last")) and not _ordinary(first)
        else None
    )


def _ordinary(word: str) -> bool:
    return lexicons.is_common(word) and "hi" not in (lexicons.rate(word, "first"), lexicons.rate(word, "last"))


def first_and_last(text: str) -> tuple[int, int] | None:
    words = text.split()
    first, last = words[0], words[-1]
    both = lexicons.rate(first, "first") == "hi" and lexicons.rate(last, "last") == "hi"
    sure = lexicons.rate(first, "first") == "hi" and lexicons.is_name(last) and (both or not lexicons.is_common(first))
    plain = [part for part in re.split(r"['’-]", last) if len(part) > 1]
    if not sure or last.lower() in _NEVER:
        return None
    known = lexicons.rate(last, "last") == "hi" or (plain and not any(map(lexicons.is_common, plain)))
    return _run(text) if known and (text.isupper() or not last.isupper()) else None


def first_and_initial(text: str) -> bool:
    first = text.split(maxsplit=1)[0]
    return lexicons.rate(first, "first") == "hi" and not _ordinary(first)


def any_and_initial(text: str) -> bool:
    """A capitalised word that is no word of ours, and an initial: "Oriel D."."""
    return _foreign(text.split(maxsplit=1)[0])


def apposed(text: str) -> tuple[int, int] | None:
    """The name of somebody just described, of two words at least: "a 70-year-old man, Oriel Dahl"."""
    pieces = list(_PIECE.finditer(text))
    first = pieces[0].group()
    known = "hi" in (lexicons.rate(first, "first"), lexicons.rate(first, "last"))
    if len(pieces) < 2 or not (known or _foreign(first)) or lexicons.is_term(pieces[1].group().rstrip(".")):
        return None
    end = pieces[1].end()
    return pieces[0].start(), end if _is_initial(pieces[1].group()) else _tidy(text, 0, end)


def saying(text: str) -> tuple[int, int] | None:
    """Who says something: words that are no words of ours, or a first name and any."""
    words = text.split()
    known = lexicons.rate(words[0], "first") == "hi" and not lexicons.is_common(words[0])
    fits = all(_foreign(word) for word in words) or (known and len(words) > 1 and not lexicons.is_term(words[-1]))
    return None if not fits or words[0].lower().endswith(_FIELDS_OF_MEDICINE) else (0, len(text))


def alone(text: str) -> tuple[int, int] | None:
    """A name whose words are of the lists, or no words of ours."""
    words = text.split()
    known = all(
        _foreign(word) or "hi" in (lexicons.rate(word, "first"), lexicons.rate(word, "last")) or _is_initial(word)
        for word in words
    )
    field = words[0].lower().endswith(_FIELDS_OF_MEDICINE)
    return likely(text) if known and not field else None


def _foreign(word: str) -> bool:
    plain = word.strip(".,")
    return len(plain) > 2 and plain.istitle() and not lexicons.is_common(plain) and not lexicons.is_term(plain)


def initial_and_last(text: str) -> bool:
    last = text.rsplit(maxsplit=1)[-1]
    return lexicons.rate(last, "last") == "hi" and lexicons.is_name(last) and not lexicons.is_common(last)


def last_and_first(text: str) -> bool:
    last, first = re.split(r",\s?", text)[:2]
    first = first.split()[0]
    return (
        lexicons.rate(first, "first") == "hi"
        and lexicons.is_name(last)
        and lexicons.is_name(first)
        and lexicons.rate(last, "last") == "hi"
    )


def whole(text: str) -> tuple[int, int] | None:
    found = listed(text)
    if found is None and "," in text:
        first = text.split(",")[1].split(maxsplit=1)[0]
        found = likely(text) if lexicons.rate(first, "first") == "hi" else None
    return found if found and found[1] >= len(text.rstrip(". ")) else None


def lone(text: str) -> tuple[int, int] | None:
    """A line that is a first name and a surname."""
    words = [word.strip(".") for word in text.split()]
    names = (
        2 <= len(words) <= 4 and lexicons.rate(words[0], "first") == "hi" and lexicons.rate(words[-1], "last") == "hi"
    )
    return whole(text) if names else None


def no_genitive(text: str) -> tuple[int, int]:
    return 0, len(re.sub(r"['’]s$", "", text))


def small_name(text: str) -> bool:
    return text.lower() not in _NEVER and (
        "hi" in (lexicons.rate(text, "last"), lexicons.rate(text, "first")) or not lexicons.is_common(text)
    )


def small_names(text: str) -> tuple[int, int] | None:
    words = text.replace(",", " ").split()
    return (
        (0, len(text))
        if all(small_name(word) for word in words) and any(lexicons.rate(word, "first") for word in words)
        else None
    )


def pair_of_initials(text: str) -> bool:
    """Initials of who dictated and who typed, and no two words."""
    return not any(lexicons.is_frequent(part) or lexicons.is_term(part) for part in text.split("/"))


def initials(text: str) -> bool:
    """Whether letters may be somebody's initials, and no degree, abbreviation or frequent word."""
    plain = text.replace(".", "")
    return len(plain) >= 2 and plain not in _NO_INITIALS and (len(plain) < 3 or not lexicons.is_frequent(plain))

"""Surrogates of people's names and user names, word by word.

Every word of a name is replaced by itself, whatever the label and the order: "Smith, John", "John Smith", "Smith" and
"JS" agree within a patient, and a family keeps sharing a surname. Which letter a name begins with follows one keyed
permutation of the alphabet per patient, so initials agree with names. Whether a word is a first name, and whose, is
told by the lists alone; a word they do not know is taken for a surname. Two words that the lists know never become the
same; the rest is settled by the patient's `NameBook`. Titles, degrees, generations and particles are kept. O' and D'
are kept too, so the initial of O'Brien does not agree with its name.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaffinch.deid.surrogates.letters import (
    Keyed,
    bears,
    fold,
    followed_by,
    initials,
    is_word,
    joined,
    letter_map,
    pieces,
    reshaped,
    styled,
)
from chaffinch.deid.surrogates.lists import BOTH, FEMALE, MALE, SIZES, SURNAME, UNTOLD, names
from chaffinch.languages import kept_words

TITLES = kept_words("titles")
AFTER = kept_words("after_names")  # generations and degrees
AFTER_COMMA = kept_words("after_comma")  # degrees that are also names and initials
PARTICLES, LOWER_PARTICLES = kept_words("particles"), kept_words("lower_particles")
PREFIXES = frozenset("odl")  # before an apostrophe
APOSTROPHES = frozenset("'’ʼ`´")
MOST_INITIALS = 3


def person(text: str, keyed: Keyed) -> str:
    """Replace every word of a name and keep its form."""
    parts = pieces(text)
    kept = _kept(parts)
    drawn = {}
    for at, part in enumerate(parts):
        if at in kept or not bears(part[0]):
            continue
        drawn[at] = name_word(part, keyed) if is_word(part) else reshaped(part, keyed, "number")
    return joined(parts, drawn)


def name_word(word: str, keyed: Keyed) -> str:
    """What stands for one word of a name, in its style: a name of the same sort, or letters for initials."""
    folded = fold(word)
    role = names().roles.get(folded)
    if len(folded) == 1 or (role is None and len(folded) <= MOST_INITIALS):
        return initials(word, keyed)
    letter = letter_map(keyed.secret, keyed.patient).get(folded[0])
    if letter is None:
        return _other_script(word, keyed)
    if role in {BOTH, UNTOLD}:
        role = keyed.gender or (FEMALE, MALE)[keyed.number(2, "gender", folded)]
    return styled(_listed_name(folded, role or SURNAME, letter, keyed), word)


def _listed_name(folded: str, role: str, letter: str, keyed: Keyed) -> str:
    """Draw a name of a role with an initial; no two names that the lists know and that share an initial get one."""
    place, pool = names().places(role, folded[0]).get(folded), names().drawable(role, letter)

    def draw(attempt: int) -> str:
        parts = ("name", role, folded[0], str(attempt))
        return pool[keyed.exchange(place, SIZES[role], *parts, text=folded)]

    keyed.used = True
    return keyed.names.settle(folded, draw, avoid_real=role == SURNAME)


def _other_script(word: str, keyed: Keyed) -> str:
    """Other letters of the same script and case, for names that no list is for; the first is the name's initial."""
    return initials(word[0], keyed) + reshaped(word[1:], keyed, "script")


def username(text: str, keyed: Keyed) -> str:
    """The user name with known names in it replaced as in notes, and all other letters and digits drawn anew."""
    parts = pieces(text)
    drawn = {}
    for at, part in enumerate(parts):
        if is_word(part) and len(part) > MOST_INITIALS and fold(part) in names().roles:
            drawn[at] = name_word(part, keyed)
        elif bears(part[0]):
            drawn[at] = reshaped(part, keyed, "user")
    return joined(parts, drawn)


def _kept(parts: Sequence[str]) -> frozenset[int]:
    """The places of the words that are no names; if there is no name beside them, they are taken for names."""
    found: set[int] = set()
    full = 0  # names of two letters and more so far
    for at, part in enumerate(parts):
        if not is_word(part) or at in found:
            continue
        degree = _degree(parts, at) if full else ()
        if degree or _possessive(parts, at) or _before_a_name(parts, at):
            found |= {at, *degree}
        else:
            full += len(part) > 1
    names_left = any(is_word(part) and at not in found for at, part in enumerate(parts))
    return frozenset(at for at in found if names_left or _possessive(parts, at))


def _degree(parts: Sequence[str], at: int) -> tuple[int, ...]:
    """The places of a degree or generation that begins here; "M.D." has two."""
    word = fold(parts[at])
    if word in AFTER or (word in AFTER_COMMA and "," in parts[at - 1] and parts[at].isupper()):
        return (at,)
    between, following = followed_by(parts, at)
    if following == at + 2 and between.strip() == "." and word + fold(parts[following]) in AFTER | AFTER_COMMA:
        closed = "".join(parts[following + 1 : following + 2]).startswith(".")
        return (at, following) if closed or len(word) > 1 else ()
    return ()


def _possessive(parts: Sequence[str], at: int) -> bool:
    return parts[at] in {"s", "S"} and at > 1 and parts[at - 1] in APOSTROPHES and is_word(parts[at - 2])


def _before_a_name(parts: Sequence[str], at: int) -> bool:
    """Whether the word is a title, a particle, or the O of O'Brien."""
    word = fold(parts[at])
    if word in TITLES:
        return True
    between, following = followed_by(parts, at)
    if following != at + 2 or len(parts[following]) < 2:  # digits between, or an initial
        return False
    name = parts[following]
    if between in APOSTROPHES:
        return word in PREFIXES
    if between.strip(" \t\r\n.-") or fold(name) in AFTER or fold(name) in TITLES:
        return False
    return word in PARTICLES or (word in LOWER_PARTICLES and parts[at].islower() and not name.islower())

"""Surrogates of people's names and user names, word by word.

Every word of a name is replaced on its own, whatever the label and the order: "Smith, John", "John Smith", "Smith" and
"JS" agree within a patient, and a family keeps sharing a surname. Which letter a name begins with follows one keyed
permutation of the alphabet per patient, so initials agree with names. Only the lists say whether a word is a first
name, and of which gender; a word they do not have is taken for a surname. Two words that the lists have never become
the same; for other words the patient's `NameBook` avoids collisions. Titles, degrees, generations and particles are
kept. O' and D' are kept too, so the initial of O'Brien does not agree with its name.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaffinch.deid.surrogates.letters import (
    SurrogateSource,
    copy_case,
    fold,
    initials,
    is_significant,
    is_word,
    join_pieces,
    letter_map,
    next_word,
    pieces,
    reshape,
)
from chaffinch.deid.surrogates.lists import BOTH, FEMALE, MALE, SIZES, SURNAME, UNKNOWN_GENDER, names
from chaffinch.languages import kept_words

TITLES = kept_words("titles")
AFTER = kept_words("after_names")  # generations and degrees
AFTER_COMMA = kept_words("after_comma")  # degrees that are also names and initials
PARTICLES, LOWER_PARTICLES = kept_words("particles"), kept_words("lower_particles")
PREFIXES = frozenset("odl")  # before an apostrophe
APOSTROPHES = frozenset("'’ʼ`´")
MOST_INITIALS = 3  # letters; a word this short that no list has is read as initials


def person(text: str, source: SurrogateSource) -> str:
    """Replace the words and numbers of a name in their form; keep titles, particles, degrees, possessive s."""
    parts = pieces(text)
    kept = _kept_words(parts)
    drawn = {}
    for i, part in enumerate(parts):
        if i in kept or not is_significant(part[0]):
            continue
        drawn[i] = name_word(part, source) if is_word(part) else reshape(part, source, "number")
    return join_pieces(parts, drawn)


def name_word(word: str, source: SurrogateSource) -> str:
    """Replace one word of a name in its case: by a name of its role (surname if unknown), short ones as initials."""
    folded = fold(word)
    role = names().roles.get(folded)
    if len(folded) == 1 or (role is None and len(folded) <= MOST_INITIALS):
        return initials(word, source)
    letter = letter_map(source.secret, source.patient).get(folded[0])
    if letter is None:
        return _replace_other_script(word, source)
    if role in {BOTH, UNKNOWN_GENDER}:
        role = source.gender or (FEMALE, MALE)[source.number(2, "gender", folded)]
    return copy_case(_draw_listed_name(folded, role or SURNAME, letter, source), word)


def _draw_listed_name(folded: str, role: str, letter: str, source: SurrogateSource) -> str:
    """Draw a name of a role that begins with `letter`; listed names of one initial never get the same one."""

    def draw(attempt: int) -> str:
        """Return the surrogate of this attempt: the pool's name at the permuted index."""
        index, pool = names().index(role, folded), names().drawable(role, letter)
        parts = ("name", role, folded[0], str(attempt))
        return pool[source.permute_index(index, SIZES[role], *parts, text=folded)]

    source.used = True
    return source.names.surrogate_for(folded, draw, avoid_real=role == SURNAME)


def _replace_other_script(word: str, source: SurrogateSource) -> str:
    """Return a name in another script, without lists, with its letters redrawn; the initial as initials are."""
    return initials(word[0], source) + reshape(word[1:], source, "script")


def username(text: str, source: SurrogateSource) -> str:
    """Replace known names in a user name as in notes, and all other letters and digits by drawn ones."""
    parts = pieces(text)
    drawn = {}
    for i, part in enumerate(parts):
        if is_word(part) and len(part) > MOST_INITIALS and fold(part) in names().roles:
            drawn[i] = name_word(part, source)
        elif is_significant(part[0]):
            drawn[i] = reshape(part, source, "user")
    return join_pieces(parts, drawn)


def _kept_words(parts: Sequence[str]) -> frozenset[int]:
    """Return the indices of titles, particles, degrees, possessives to keep; if no name is left, possessives alone."""
    indices: set[int] = set()
    names_so_far = 0  # of two letters or more
    for i, part in enumerate(parts):
        if not is_word(part) or i in indices:
            continue
        degree = _degree_indices(parts, i) if names_so_far else ()
        if degree or _is_possessive(parts, i) or _precedes_name(parts, i):
            indices |= {i, *degree}
        else:
            names_so_far += len(part) > 1
    names_left = any(is_word(part) and i not in indices for i, part in enumerate(parts))
    return frozenset(i for i in indices if names_left or _is_possessive(parts, i))


def _degree_indices(parts: Sequence[str], i: int) -> tuple[int, ...]:
    """Return the indices of a degree or generation that begins at word i ("M.D." has two); () if none does."""
    word = fold(parts[i])
    if word in AFTER or (word in AFTER_COMMA and "," in parts[i - 1] and parts[i].isupper()):
        return (i,)
    between, following = next_word(parts, i)
    if following == i + 2 and between.strip() == "." and word + fold(parts[following]) in AFTER | AFTER_COMMA:
        closed = "".join(parts[following + 1 : following + 2]).startswith(".")
        return (i, following) if closed or len(word) > 1 else ()
    return ()


def _is_possessive(parts: Sequence[str], i: int) -> bool:
    """Tell whether the piece is the s after an apostrophe."""
    return parts[i] in {"s", "S"} and i > 1 and parts[i - 1] in APOSTROPHES and is_word(parts[i - 2])


def _precedes_name(parts: Sequence[str], i: int) -> bool:
    """Tell whether the word is a title, or before a name a particle or the O of O'Brien."""
    word = fold(parts[i])
    if word in TITLES:
        return True
    between, following = next_word(parts, i)
    if following != i + 2 or len(parts[following]) < 2:  # digits between, or an initial
        return False
    name = parts[following]
    if between in APOSTROPHES:
        return word in PREFIXES
    if between.strip(" \t\r\n.-") or fold(name) in AFTER or fold(name) in TITLES:
        return False
    return word in PARTICLES or (word in LOWER_PARTICLES and parts[i].islower() and not name.islower())

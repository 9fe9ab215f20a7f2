"""Mutual information of a mention's state and its role, compared with chance: do states follow roles?

Which words have which role depends on the label: names of persons are given names, family names and initials by public
lists; words of any other label are abbreviations, common words of the language, or rare words (as eponyms are).

n mentions. Where position alone decides the state, as in a left-right chain or with separate states for first tokens,
the figure would be high by construction; it is measured on mentions of one token, and conditioned on the position.
The lists are also features of the set "rich": states may have learnt them from there. What is measured is that the
states of a class, which training does not supervise, separate along the lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from chaffinch import languages
from chaffinch.features import signatures as oov
from chaffinch.features.signatures import Pack
from chaffinch.kernels import Floats, Ints
from chaffinch.models.classhmm.describe.report import Measure, Roles
from chaffinch.text.identifiers import kind_of

GIVEN, FAMILY, INITIAL = "given name", "family name", "initial"
ABBREVIATION, COMMON, RARE = "abbreviation", "common word", "rare word"
LONGEST, SHORTEST = 6, 4  # letters of an abbreviation; of a rare word, since shorter ones are often symbols
PERMUTATIONS, HIGH = 500, 95  # random assignments of states, and the percentile of their NMI that counts as chance
ENOUGH, EACH = 30, 5  # mentions with a role that a measure needs, and of each of two roles; fewer say little
PART = 0.15  # the share of mentions that must have a role; below, the roles do not apply to this class
_RANKS = {"hi": 2, "lo": 1}

Mention = tuple[Sequence[str], Sequence[int]]  # words and states


def role(word: str, pack: Pack) -> str:
    """Return a word's role by the name lists: given name, family name or initial; "" if they do not decide.

    >>> [role(word, oov.pack("en")) for word in ("Mary", "Ratcliffe", "J.", "Thomas", "England")]
    ['given name', 'family name', 'initial', '', '']
    """
    if word[:1].isupper() and word[1:] in ("", "."):
        return INITIAL
    fields = dict(part.partition("=")[::2] for part in oov.signature(word, pack).split("|"))
    first, last, *others = (_RANKS.get(fields.get(name, ""), 0) for name in languages.LEXICA)
    if first == last or max(others) > max(first, last):
        return ""
    return GIVEN if first > last else FAMILY


def term_role(word: str, pack: Pack) -> str:
    """Return abbreviation, common word or rare word; empty for numbers, signs and short words that are not common.

    >>> [term_role(word, oov.pack("en")) for word in ("COPD", "heart", "Wiskott", "12", "T")]
    ['abbreviation', 'common word', 'rare word', '', '']
    """
    if word.isupper() and word.isalpha() and 2 <= len(word) <= LONGEST:
        return ABBREVIATION
    if word.casefold() in pack.frequent:
        return COMMON
    return RARE if word.isalpha() and len(word) >= SHORTEST else ""


@dataclass(frozen=True, slots=True)
class RoleSet:
    """The roles that words of some labels can have, and the function that tells a word's role."""

    roles: tuple[str, ...]
    role_of: Callable[[str, Pack], str]


PEOPLE = RoleSet((GIVEN, FAMILY, INITIAL), role)
TERMS = RoleSet((ABBREVIATION, COMMON, RARE), term_role)


def role_set(label: str) -> RoleSet:
    """Return the roles of a label's words: those of names for labels of persons, else those of terms.

    >>> role_set("PER") is role_set("PATIENT") is PEOPLE, role_set("Disease") is TERMS
    (True, True)
    """
    return PEOPLE if kind_of(label).category == "NAME" else TERMS


def nmi(one: Ints, other: Ints, given: Ints | None = None) -> float:
    """Return two rows' mutual information, normalised (2 I / (H + H)), given a third if any; 0 without entropy."""
    if not len(one):
        return 0.0
    given = np.zeros(len(one), np.int64) if given is None else given
    A, B = int(one.max()) + 1, int(other.max()) + 1
    table = np.bincount((given * A + one) * B + other, minlength=(int(given.max()) + 1) * A * B)
    return _nmi(table.reshape(-1, A, B).astype(float))


def _nmi(table: Floats) -> float:
    """Return the normalised mutual information of A and B given G, of counts (G, A, B); 0 without entropy."""
    both = _entropy(table)
    cells = _entropy(table.sum(axis=(1, 2)))
    one, other = _entropy(table.sum(axis=2)) - cells, _entropy(table.sum(axis=1)) - cells
    total = one + other
    return float(max(2.0 * (total - (both - cells)) / total, 0.0)) if total > 1e-12 else 0.0


def _entropy(counts: Floats) -> float:
    """Return the entropy of counts, in nats."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def measure(states: Ints, roles: Ints, given: Ints | None = None, *, seed: int = 0) -> Measure:
    """Return the NMI of states and roles, and its mean and 95th percentile if states are shuffled (inside `given`)."""
    rng, n = np.random.default_rng(seed), len(states)
    groups = np.zeros(n, np.int64) if given is None else given
    order = np.argsort(groups, kind="stable")
    found = np.zeros(PERMUTATIONS)
    for turn in range(PERMUTATIONS):
        shuffled = np.empty(n, np.int64)
        shuffled[order] = states[np.lexsort((rng.random(n), groups))]
        found[turn] = nmi(shuffled, roles, given)
    high = float(np.percentile(found, HIGH)) if n else 0.0
    return Measure(n, nmi(states, roles, given), float(found.mean()), high)


def compare(mentions: Iterable[Mention], pack: Pack, label: str = "PERSON", *, seed: int = 0) -> Roles:
    """Return how the states of a class's mentions agree with roles of `label`; only a `reason` if that says little."""
    chosen = role_set(label)
    known: dict[str, str] = {}
    single: list[tuple[str, int]] = []
    longer: list[tuple[int, int, int, int]] = []  # state, role, position, length
    one_token = 0
    for words, states in mentions:
        one_token += len(words) == 1
        for position, (word, state) in enumerate(zip(words, states, strict=True)):
            if word not in known:
                known[word] = chosen.role_of(word, pack)
            name = known[word]
            if name and len(words) == 1:
                single.append((word, state))
            elif name:
                longer.append((state, chosen.roles.index(name), position, len(words)))
    counts = Counter(known[word] for word, _ in single)
    role_counts = {name: counts[name] for name in chosen.roles if counts[name]}
    if (reason := _reason_against(role_counts, len(single), one_token)) is not None:
        return Roles(one_token, role_counts, reason=reason)
    known_roles = {word: chosen.roles.index(known[word]) for word, _ in single}
    numbers = np.array([known_roles[word] for word, _ in single])
    by_token = measure(np.array([state for _, state in single]), numbers, seed=seed)
    by_word = _each_word(single, known_roles, seed)
    return Roles(one_token, role_counts, by_token, by_word, _given_position(longer, seed))


def _reason_against(counts: dict[str, int], with_role: int, single: int) -> str | None:
    """Return why roles cannot be compared with states, or None if they can."""
    if not with_role or with_role < PART * single:
        return f"no role is known for these mentions ({with_role:,} of {single:,} have one)"
    if with_role < ENOUGH:
        return f"too few mentions have a known role ({with_role:,} of {single:,})"
    if sum(count >= EACH for count in counts.values()) < 2:
        listed = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        return f"the roles of these mentions do not differ enough ({listed})"
    return None


def _each_word(single: Sequence[tuple[str, int]], known: dict[str, int], seed: int) -> Measure:
    """Return the measure with every word once, in the state it mostly has; of equals the lowest."""
    usual: dict[str, Counter[int]] = {}
    for word, state in single:
        usual.setdefault(word, Counter())[state] += 1
    states = [max(sorted(tally), key=lambda state: tally[state]) for tally in usual.values()]
    return measure(np.array(states), np.array([known[word] for word in usual]), seed=seed)


def _given_position(longer: Sequence[tuple[int, int, int, int]], seed: int) -> Measure | None:
    """Return the agreement on tokens of longer mentions, given position and length; None if there are too few."""
    if len(longer) < ENOUGH:
        return None
    states, roles, positions, lengths = np.array(longer).T
    _, given = np.unique(np.stack([positions, lengths]), axis=1, return_inverse=True)
    return measure(states, roles, given.reshape(-1), seed=seed)

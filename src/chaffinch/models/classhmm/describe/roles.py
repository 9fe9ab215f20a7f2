"""Do states follow roles? The mutual information of a name's state and its role, and what chance would give.

n mentions. Where position alone decides the state, as in a chain that goes from left to right or knows first tokens
apart, that figure would be won by construction; it is measured on mentions of one token, and given the position.
The lists are also features of the set "rich": states may have found them there. What is measured is that the states
of a class, of which learning says nothing, part along the lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from chaffinch import languages
from chaffinch.features import signatures as oov
from chaffinch.features.signatures import Pack
from chaffinch.kernels import Floats, Ints
from chaffinch.models.classhmm.describe.report import Measure, Roles

GIVEN, FAMILY, INITIAL = "given name", "family name", "initial"
ROLES = (GIVEN, FAMILY, INITIAL)
PERMUTATIONS, HIGH = 500, 95
ENOUGH, EACH = 30, 5  # mentions with a role, and of at least two roles
PART = 0.15  # of the mentions must have a role, else lists of names are not about this class
_RANKS = {"hi": 2, "lo": 1}

Mention = tuple[Sequence[str], Sequence[int]]  # words and states


def role(word: str, pack: Pack) -> str:
    """Given name, family name or initial; empty if both lists say the same of a word, or another list says more.

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


def nmi(one: Ints, other: Ints, given: Ints | None = None) -> float:
    """2 I(one; other) / (H(one) + H(other)), all of it given a third; 0 where both are certain. Values are from 0."""
    if not len(one):
        return 0.0
    given = np.zeros(len(one), np.int64) if given is None else given
    A, B = int(one.max()) + 1, int(other.max()) + 1
    table = np.bincount((given * A + one) * B + other, minlength=(int(given.max()) + 1) * A * B)
    return _nmi(table.reshape(-1, A, B).astype(float))


def _nmi(table: Floats) -> float:
    """The same of counts (G, A, B)."""
    both = _entropy(table)
    cells = _entropy(table.sum(axis=(1, 2)))
    one, other = _entropy(table.sum(axis=2)) - cells, _entropy(table.sum(axis=1)) - cells
    total = one + other
    return float(max(2.0 * (total - (both - cells)) / total, 0.0)) if total > 1e-12 else 0.0


def _entropy(counts: Floats) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def measure(states: Ints, roles: Ints, given: Ints | None = None, *, seed: int = 0) -> Measure:
    """The NMI of n states and roles, and of permutations of the states, each within one value of `given`."""
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


def compare(mentions: Iterable[Mention], pack: Pack, *, seed: int = 0) -> Roles:
    """What the roles of a class's mentions say of its states."""
    known: dict[str, str] = {}
    single: list[tuple[str, int]] = []
    longer: list[tuple[int, int, int, int]] = []  # state, role, place, length
    alone = 0
    for words, states in mentions:
        alone += len(words) == 1
        for place, (word, state) in enumerate(zip(words, states, strict=True)):
            if word not in known:
                known[word] = role(word, pack)
            own = known[word]
            if own and len(words) == 1:
                single.append((word, state))
            elif own:
                longer.append((state, ROLES.index(own), place, len(words)))
    counts = Counter(known[word] for word, _ in single)
    told = {name: counts[name] for name in ROLES if counts[name]}
    if (reason := _lacking(told, len(single), alone)) is not None:
        return Roles(alone, told, reason=reason)
    numbers = np.array([ROLES.index(known[word]) for word, _ in single])
    by_token = measure(np.array([state for _, state in single]), numbers, seed=seed)
    return Roles(alone, told, by_token, _each_word(single, known, seed), _given_place(longer, seed))


def _lacking(told: dict[str, int], known: int, alone: int) -> str | None:
    """Why roles cannot be set against states, or None if they can."""
    if not known or known < PART * alone:
        return f"no role is known for these mentions ({known:,} of {alone:,} have one)"
    if known < ENOUGH:
        return f"too few mentions have a known role ({known:,} of {alone:,})"
    if sum(count >= EACH for count in told.values()) < 2:
        listed = ", ".join(f"{name} {count:,}" for name, count in told.items())
        return f"the roles of these mentions do not differ enough ({listed})"
    return None


def _each_word(single: Sequence[tuple[str, int]], known: dict[str, str], seed: int) -> Measure:
    """The same with every word once, and the state it mostly has; of equals the lowest."""
    usual: dict[str, Counter[int]] = {}
    for word, state in single:
        usual.setdefault(word, Counter())[state] += 1
    states = [max(sorted(own), key=lambda state: own[state]) for own in usual.values()]
    return measure(np.array(states), np.array([ROLES.index(known[word]) for word in usual]), seed=seed)


def _given_place(longer: Sequence[tuple[int, int, int, int]], seed: int) -> Measure | None:
    if len(longer) < ENOUGH:
        return None
    states, roles, places, lengths = np.array(longer).T
    _, given = np.unique(np.stack([places, lengths]), axis=1, return_inverse=True)
    return measure(states, roles, given.reshape(-1), seed=seed)

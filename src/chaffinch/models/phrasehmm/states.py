"""The states of a phrase HMM, which may follow which, and which may emit a segment.

K states, D domains. A label is a set of domains as a bit mask; 0 is the empty label. Inside a state, a chain of J inner
states goes through the words of a segment; without hierarchy J is 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from chaffinch.errors import DataError
from chaffinch.kernels import Floats, Ints
from chaffinch.kernels.lattice import Bools

POSITIVE, NULL = 0, 1
OTHER, BEFORE, LABELLED, BETWEEN, AFTER, NONE, EDGE = range(7)  # zones; OTHER without zones, NONE in the null model
INNER = 4  # inner states of a labelled phrase: before, argument, between, after
ARGUMENT = 1
ANY = 2  # both sub-models

# Which zone may follow which; the last row begins a sentence, the last column ends it.
_FOLLOWS = np.zeros((EDGE + 1, EDGE + 1), np.bool_)
for _from, _to in (
    (OTHER, (OTHER, LABELLED, EDGE)), (BEFORE, (BEFORE, LABELLED)), (BETWEEN, (BETWEEN, LABELLED)),
    (AFTER, (AFTER, EDGE)), (LABELLED, (OTHER, LABELLED, BETWEEN, AFTER, EDGE)), (NONE, (NONE, EDGE)),
    (EDGE, (OTHER, BEFORE, LABELLED, NONE)),
):  # fmt: skip
    _FOLLOWS[_from, list(_to)] = True
# The same inside a labelled phrase.
_INSIDE = np.zeros((INNER + 1, INNER + 1), np.bool_)
for _from, _to in ((0, (0, 1)), (1, (1, 2, 3, INNER)), (2, (2, 1)), (3, (3, INNER)), (INNER, (0, 1))):
    _INSIDE[_from, list(_to)] = True


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """The sub-model, type, label and zone of each state. States that differ in nothing are copies."""

    types: tuple[str, ...]
    domains: tuple[str, ...]
    sub: Ints  # (K,) POSITIVE or NULL
    type: Ints  # (K,)
    label: Ints  # (K,)
    zone: Ints  # (K,)
    unlabelled_inner: int = 0  # inner states where there is no label; 0 without hierarchy

    @classmethod
    def of(
        cls, seen: Iterable[tuple[int, str, int, int]], domains: tuple[str, ...], copies: int, unlabelled_inner: int = 0
    ) -> States:
        """Return the states of the combinations (sub-model, type, label, zone) seen, each `copies` times, sorted."""
        rows = sorted(set(seen))
        types = tuple(sorted({kind for _, kind, _, _ in rows}))
        number = {kind: n for n, kind in enumerate(types)}
        table = np.array([(sub, number[kind], label, zone) for sub, kind, label, zone in rows], np.int64)
        sub, kind, label, zone = np.repeat(table, copies, axis=0).T
        return cls(types, domains, sub, kind, label, zone, unlabelled_inner)

    @property
    def size(self) -> int:
        """Return K, the number of states."""
        return len(self.sub)

    @property
    def inner(self) -> int:
        """Return J, the number of inner states of a state; 1 without hierarchy."""
        return max(INNER, self.unlabelled_inner) if self.unlabelled_inner else 1

    @property
    def all_domains(self) -> int:
        """Return the bit mask of all domains."""
        return (1 << len(self.domains)) - 1

    def moves(self) -> Bools:
        """Return which state may follow which (K+1, K+1); row K begins a sentence, column K ends it."""
        zone = np.append(self.zone, EDGE)
        return np.asarray(_FOLLOWS[np.ix_(zone, zone)])

    def inner_moves(self) -> Bools:
        """Return which inner state may follow which (K, J+1, J+1); row J enters the state, column J leaves it."""
        J, n = self.inner, self.unlabelled_inner
        out = np.zeros((self.size, J + 1, J + 1), np.bool_)
        labelled, edge = np.zeros((J + 1, J + 1), np.bool_), [*range(INNER), J]
        labelled[np.ix_(edge, edge)] = _INSIDE
        free = np.zeros((J + 1, J + 1), np.bool_)
        free[np.ix_([*range(n), J], [*range(n), J])] = True
        free[J, J] = False
        out[self.label > 0], out[self.label == 0] = labelled, free
        return out

    def emitters(self, sub: int, kind: int, label: int, *, lenient: bool = False) -> Bools:
        """Return (K,) which states of sub-model `sub` (or ANY) and label may emit segments of type `kind`, -1 unknown.

        A zone in which no unlabelled state has the type lets all its unlabelled states emit it. `lenient` does the same
        for labelled states, and for a label without any state takes those that share a domain with it.
        """
        pool = (self.label == label) & ((self.sub == sub) | (sub == ANY))
        if lenient and not pool.any():
            pool = ((self.label & label) > 0) & ((self.sub == sub) | (sub == ANY))
        out = pool & (self.type == kind)
        if label and not lenient:
            return np.asarray(out)
        return np.asarray(out | (pool & ~np.isin(self.zone, self.zone[out])))

    def readers(self, sub: int, kind: int, entities: int) -> Bools:
        """Return (K,) which states may emit a segment of type `kind` whose entities are of those domains (a mask)."""
        out = self.emitters(sub, kind, 0)
        fits = (self.label > 0) & ((self.label & ~entities) == 0) & (self.type == kind)
        return np.asarray(out | (fits & ((self.sub == sub) | (sub == ANY))))

    def cells(self, states: Bools, *, first: bool, inner: int = -1) -> Ints:
        """Return the expanded states of these states, at segments' first words or not; `inner` fixes labelled ones.

        Inner state j of state q is q J + j, plus K J where the word is not the first of its segment.
        `inner` is the one inner state that labelled states may take, -1 for all.
        """
        J = self.inner
        allowed = np.zeros((self.size, J), np.bool_)
        if self.unlabelled_inner:
            allowed[self.label == 0, : self.unlabelled_inner] = True
            allowed[self.label > 0, :INNER] = np.arange(INNER) == inner if inner >= 0 else True
        else:
            allowed[:] = True
        return np.flatnonzero(allowed & states[:, None]) + (0 if first else self.size * J)

    def zone_mask(self, states: Bools) -> int:
        """Return the union of the zones of the states marked (K,), as a bit mask."""
        return int(sum(1 << zone for zone in np.unique(self.zone[states]).tolist()))

    def array(self) -> Ints:
        """Return the sub-model, type, label and zone of each state for a model file (K, 4)."""
        return np.stack([self.sub, self.type, self.label, self.zone], axis=1)


def zones_of(labels: Ints, *, zones: bool) -> Ints:
    """Return the zones of a positive sentence's segments: LABELLED, else by position, or OTHER without `zones`."""
    out = np.full(len(labels), OTHER)
    where = np.flatnonzero(labels)
    if zones and len(where):
        out[: where[0]], out[where[0] : where[-1]], out[where[-1] :] = BEFORE, BETWEEN, AFTER
    out[where] = LABELLED
    return out


def possible(zones: Iterable[int]) -> bool:
    """Tell whether a path exists through segments whose states have those zones (bit masks).

    >>> possible([1 << BEFORE, 1 << LABELLED]), possible([1 << BEFORE, 1 << BEFORE])
    (True, False)
    """
    now = _next(1 << EDGE)
    some = False
    for mask in zones:
        some = True
        here = now & mask
        if not here:
            return False
        now = _next(here)
    return not some or bool(now & (1 << EDGE))


_NEXT: dict[int, int] = {}


def _next(mask: int) -> int:
    """Return the bit mask of zones that may follow any zone of a bit mask; results are cached."""
    if mask not in _NEXT:
        rows = [n for n in range(EDGE + 1) if mask >> n & 1]
        _NEXT[mask] = int(sum(1 << n for n in np.flatnonzero(_FOLLOWS[rows].any(axis=0)).tolist()))
    return _NEXT[mask]


def log_uniform(allowed: Bools) -> Floats:
    """Return the logs of equal chances over what each row allows, -inf elsewhere; DataError if no row allows any."""
    counts = np.count_nonzero(allowed, axis=-1, keepdims=True)
    if (counts == 0).all():
        raise DataError("no move is possible at all; give sentences with at least one segment")
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(allowed, -np.log(np.maximum(counts, 1)), -np.inf))

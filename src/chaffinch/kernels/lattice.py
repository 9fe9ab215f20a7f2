"""Lattices of log-potentials, checked when they are built, and the results of inference on them; all are frozen.

T tokens, K states, S tags; B sequences of N tokens in all; P lists holding Q states in all; M cells, one per
token and allowed state. Impossible is `-inf`; NaN and `+inf` are refused. An empty sequence has exactly one
path, the empty one, of score 0: `start` and `end` are not consulted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chaffinch.errors import DataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

Number = TypeVar("Number", float, Floats)  # a float for a `Lattice`, an array (B,) for a `Batch`


@dataclass(frozen=True, slots=True, eq=False)
class Active:
    """The states allowed at each token, as lists; tokens may share a list (one per tag, say).

    >>> active = Active.of([[0, 1], [4]], which=[0, 0, 1])
    >>> active.widths.tolist(), active.at.tolist()
    ([2, 2, 1], [0, 2, 4, 5])
    """

    states: Ints  # (Q,) the lists end to end, each strictly increasing
    bounds: Ints  # (P+1,) list p is states[bounds[p]:bounds[p+1]]
    which: Ints  # (N,) the list of each token
    at: Ints = field(init=False, repr=False)  # (N+1,) token n owns cells at[n] to at[n+1]

    def __post_init__(self) -> None:
        """Check the lists of states, and compute where each token's cells begin; raise DataError if they are wrong."""
        _set(self, states=_ints("active.states", self.states), bounds=_ints("active.bounds", self.bounds))
        _set(self, which=_ints("active.which", self.which))
        _check_bounds("active.bounds", self.bounds, len(self.states))
        if len(self.which) and not 0 <= self.which.min() <= self.which.max() < len(self.bounds) - 1:
            raise DataError(f"active.which must name one of {len(self.bounds) - 1} lists, counted from 0")
        rises = np.diff(self.states) > 0
        inner = self.bounds[1:-1]
        rises[inner[(inner > 0) & (inner < len(self.states))] - 1] = True  # a new list may start lower
        if not rises.all() or (len(self.states) and self.states.min() < 0):
            raise DataError("active.states must be strictly increasing, from 0 up, inside each list")
        _set(self, at=np.concatenate([[0], np.cumsum(self.widths)]).astype(np.int64))

    @classmethod
    def of(cls, lists: Sequence[ArrayLike], which: ArrayLike | None = None) -> Active:
        """Return lists of allowed states as arrays; token n uses list `which[n]`, by default list n; or DataError."""
        arrays = [np.asarray(states, dtype=np.int64) for states in lists]
        bounds = np.concatenate([[0], np.cumsum([len(states) for states in arrays])]).astype(np.int64)
        chosen = np.arange(len(arrays)) if which is None else which
        return cls(np.concatenate([np.zeros(0, np.int64), *arrays]), bounds, np.asarray(chosen, dtype=np.int64))

    @classmethod
    def from_mask(cls, allowed: Bools) -> Active:
        """Return the lists of states that a mask (N, K) allows, one list per token."""
        bounds = np.concatenate([[0], np.cumsum(np.count_nonzero(allowed, axis=1))]).astype(np.int64)
        return cls(np.nonzero(allowed)[1], bounds, np.arange(len(allowed)))

    @property
    def widths(self) -> Ints:
        """Return the number of states that each token may take (N,)."""
        return np.asarray(np.diff(self.bounds)[self.which])

    @property
    def cells(self) -> Ints:
        """Return the state of every cell (M,), token by token."""
        widths = self.widths
        entries = np.repeat(self.bounds[self.which] - self.at[:-1], widths) + np.arange(self.at[-1])
        return np.asarray(self.states[entries])

    def dense(self, values: Floats, states: int, fill: float = 0.0) -> Floats:
        """Return an array (N, K), K = `states`, with the values (M,) at their cells and `fill` elsewhere.

        >>> Active.of([[0, 2], [1]]).dense(np.array([.3, .7, 1.]), 3).tolist()
        [[0.3, 0.0, 0.7], [0.0, 1.0, 0.0]]
        """
        out = np.full((len(self.which), states), fill)
        out[np.repeat(np.arange(len(self.which)), self.widths), self.cells] = values
        return out

    def span(self, start: int, stop: int) -> Active:
        """Return the lists of the tokens from start to stop, exclusive."""
        return Active(self.states, self.bounds, self.which[start:stop])


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """Log-potentials of one sequence: start, transitions, emissions and end.

    With `active`, `emit` holds allowed cells only, and so do results of its shape.

    >>> lattice = Lattice(start=np.zeros(2), trans=np.zeros((2, 2)), emit=np.zeros((3, 2)), end=np.zeros(2))
    >>> lattice.clamp(np.array([[True, False], [True, True], [True, True]])).emit[0].tolist()
    [0.0, -inf]
    """

    start: Floats  # (K,)
    trans: Floats  # (K, K) row: from, column: to; or (T-1, K, K), one per step
    emit: Floats  # (T, K), or (M,) with `active`
    end: Floats  # (K,)
    active: Active | None = None

    def __post_init__(self) -> None:
        """Convert the potentials to float64; raise DataError if they do not fit together, or are NaN or +inf."""
        _check_potentials(self)
        if self.trans.ndim == 3 and len(self.trans) != max(len(self) - 1, 0):
            raise DataError(f"trans has {len(self.trans)} steps; {len(self)} tokens need {max(len(self) - 1, 0)}")

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.emit) if self.active is None else len(self.active.which)

    def clamp(self, allowed: Bools) -> Lattice:
        """Return the lattice with every state outside the mask (T, K) made impossible; DataError for another shape."""
        return replace(self, emit=_clamp(self, allowed))


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Sequences, concatenated, that share `start` and `end`, and `trans` unless there is one per token.

    A per-token `trans` is (N, K, K): `trans[n]` leads into token n, so that the entry of a sequence's first
    token is never read. Pair marginals of a batch follow the same rule and are zero there.

    >>> batch = Batch(np.zeros(2), np.zeros((2, 2)), np.zeros((5, 2)), np.zeros(2), bounds=np.array([0, 3, 3, 5]))
    >>> len(batch), [len(batch[i]) for i in range(3)]
    (3, [3, 0, 2])
    """

    start: Floats  # (K,)
    trans: Floats  # (K, K), or (N, K, K): trans[n] leads into token n
    emit: Floats  # (N, K), or (M,) with `active`
    end: Floats  # (K,)
    bounds: Ints  # (B+1,) sequence b is tokens bounds[b] to bounds[b+1]
    active: Active | None = None

    def __post_init__(self) -> None:
        """Convert the potentials to float64; raise DataError if they or the bounds do not fit together."""
        _set(self, bounds=_ints("bounds", self.bounds))
        _check_potentials(self)
        tokens = len(self.emit) if self.active is None else len(self.active.which)
        _check_bounds("bounds", self.bounds, tokens)
        if self.trans.ndim == 3 and len(self.trans) != tokens:
            raise DataError(f"trans has {len(self.trans)} entries; a batch of {tokens} tokens needs one per token")

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self.bounds) - 1

    def __getitem__(self, index: int) -> Lattice:
        """Return sequence number `index`, from 0, as a lattice; raise IndexError if there is none."""
        if not 0 <= index < len(self):
            raise IndexError(f"sequence {index} of {len(self)}")
        lo, hi = int(self.bounds[index]), int(self.bounds[index + 1])
        trans = self.trans if self.trans.ndim == 2 else self.trans[min(lo + 1, hi) : hi]
        if self.active is None:
            return Lattice(self.start, trans, self.emit[lo:hi], self.end)
        cells = slice(self.active.at[lo], self.active.at[hi])
        return Lattice(self.start, trans, self.emit[cells], self.end, self.active.span(lo, hi))

    @classmethod
    def of(cls, lattices: Sequence[Lattice]) -> Batch:
        """Return lattices as one batch; DataError for none, or unless start, end, kind of emit, single trans agree."""
        if not lattices:
            raise DataError("a batch of no lattices has no states; give at least one")
        head = lattices[0]
        for index, other in enumerate(lattices):
            shared = _same(head.start, other.start) and _same(head.end, other.end)
            if not shared or (other.active is None) != (head.active is None):
                raise DataError(
                    f"lattice {index} has another start, end or kind of emit than lattice 0; a batch shares them"
                )
            if other.trans.ndim != head.trans.ndim or (head.trans.ndim == 2 and not _same(head.trans, other.trans)):
                raise DataError(
                    f"lattice {index} has another trans than lattice 0; give trans per token, or one batch each"
                )
        bounds = np.concatenate([[0], np.cumsum([len(lattice) for lattice in lattices])]).astype(np.int64)
        trans = head.trans if head.trans.ndim == 2 else np.concatenate([_pad_trans(lattice) for lattice in lattices])
        emit = np.concatenate([lattice.emit for lattice in lattices])
        actives = [lattice.active for lattice in lattices if lattice.active is not None]
        return cls(head.start, trans, emit, head.end, bounds, _join(actives) if actives else None)

    @classmethod
    def from_lattice(cls, lattice: Lattice, bounds: Ints) -> Batch:
        """Return one lattice as a batch with these bounds, without checking its arrays again."""
        batch = object.__new__(cls)
        trans = _pad_trans(lattice) if lattice.trans.ndim == 3 else lattice.trans
        _set(batch, start=lattice.start, trans=trans, emit=lattice.emit, end=lattice.end)
        _set(batch, bounds=bounds, active=lattice.active)
        return batch

    def clamp(self, allowed: Bools) -> Batch:
        """Return the batch with every state outside the mask (N, K) made impossible; DataError for another shape."""
        return replace(self, emit=_clamp(self, allowed))


@dataclass(frozen=True, slots=True, eq=False)
class Posterior(Generic[Number]):
    """The result of forward-backward: log Z, state marginals, and pair marginals summed over positions."""

    log_z: Number  # float; (B,) for a batch
    states: Floats  # (T, K); (N, K) for a batch; (M,) with `active`
    pairs: Floats  # (K, K), over all positions and sequences


@dataclass(frozen=True, slots=True, eq=False)
class Path(Generic[Number]):
    """A best path: its score and its states."""

    score: Number  # float; (B,) for a batch
    states: Ints  # (T,); (N,) for a batch


@dataclass(frozen=True, slots=True, eq=False)
class TagPosterior(Generic[Number]):
    """State marginals summed by tag, and tag-pair marginals at every position."""

    log_z: Number  # float; (B,) for a batch
    states: Floats  # (T, S); (N, S) for a batch
    pairs: Floats  # (T-1, S, S); for a batch (N, S, S), pairs[n] leading into token n


def _set(owner: object, **values: object) -> None:
    """Set fields of a frozen object, in place."""
    for name, value in values.items():
        object.__setattr__(owner, name, value)


def _ints(name: str, array: ArrayLike) -> Ints:
    """Return the array as one row of int64; DataError, which names it, unless it is one row of whole numbers."""
    out = np.asarray(array)
    if out.ndim != 1 or not (out.dtype.kind in "iu" or out.size == 0):
        raise DataError(f"{name} must be one row of whole numbers, got {out.dtype} of shape {out.shape}")
    return np.ascontiguousarray(out, dtype=np.int64)


def _check_bounds(name: str, bounds: Ints, total: int) -> None:
    """Raise DataError unless bounds rise from 0 to `total`."""
    if len(bounds) == 0 or bounds[0] != 0 or bounds[-1] != total or (np.diff(bounds) < 0).any():
        raise DataError(f"{name} must rise from 0 to {total}, got {len(bounds)} values")


def _check_potentials(owner: Lattice | Batch) -> None:
    """Convert the potentials to float64, in place; DataError for NaN, +inf, no states, or shapes that do not agree."""
    for name in ("start", "trans", "emit", "end"):
        _set(owner, **{name: _potentials(name, getattr(owner, name))})
    K = len(owner.start)
    wanted: dict[str, tuple[Any, ...]] = {"start": (K,), "end": (K,), "trans": (*owner.trans.shape[:-2], K, K)}
    cells = owner.emit.shape[:1] if owner.active is None else (int(owner.active.at[-1]),)
    wanted["emit"] = (*cells, K) if owner.active is None else cells
    for name, shape in wanted.items():
        found = getattr(owner, name).shape
        if found != shape or (name == "trans" and len(found) not in (2, 3)):
            raise DataError(f"{name} must have shape {shape} for {K} states, got {found}")
    if K == 0:
        raise DataError("a lattice needs at least one state")
    if owner.active is not None and len(owner.active.states) and owner.active.states.max() >= K:
        raise DataError(f"active names state {owner.active.states.max()}; states go from 0 to {K - 1}")


def _potentials(name: str, array: ArrayLike) -> Floats:
    """Return the array as float64; raise DataError for a single number, NaN or +inf."""
    out = np.ascontiguousarray(array, dtype=np.float64)
    if np.ndim(array) == 0:
        raise DataError(f"{name} must be an array, got one number")
    if out.size and not out.max() < np.inf:
        raise DataError(f"{name} holds NaN or +inf; log-potentials are finite or -inf")
    return out


def _clamp(owner: Lattice | Batch, allowed: Bools) -> Floats:
    """Return emissions that are -inf outside the mask (tokens, K); raise DataError if that has another shape."""
    tokens = len(owner.emit) if owner.active is None else len(owner.active.which)
    shape = (tokens, len(owner.start))
    if np.shape(allowed) != shape or np.asarray(allowed).dtype != np.bool_:
        raise DataError(f"allowed must be a mask of shape {shape}, got {np.asarray(allowed).dtype} {np.shape(allowed)}")
    if owner.active is not None:
        allowed = allowed[np.repeat(np.arange(tokens), owner.active.widths), owner.active.cells]
    return np.where(allowed, owner.emit, -np.inf)


def _same(one: Floats, other: Floats) -> bool:
    """Tell whether two arrays are equal."""
    return one is other or np.array_equal(one, other)


def _pad_trans(lattice: Lattice) -> Floats:
    """Return the per-step transitions with an unread entry before the first: (T, K, K)."""
    K = len(lattice.start)
    return np.concatenate([np.zeros((min(len(lattice), 1), K, K)), lattice.trans])


def _join(actives: Sequence[Active]) -> Active:
    """Return lists of active states as one, all tokens in order; the tokens' list numbers are shifted to fit."""
    lists = np.cumsum([0, *(len(active.bounds) - 1 for active in actives)])
    cells = np.cumsum([0, *(len(active.states) for active in actives)])
    bounds = [active.bounds[1:] + shift for active, shift in zip(actives, cells, strict=False)]
    return Active(
        np.concatenate([active.states for active in actives]),
        np.concatenate([np.zeros(1, np.int64), *bounds]),
        np.concatenate([active.which + shift for active, shift in zip(actives, lists, strict=False)]),
    )

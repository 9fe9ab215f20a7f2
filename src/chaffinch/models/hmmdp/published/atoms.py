"""The published form of the sub-tag rows: sticks and atoms.

A second, small implementation to compare with `variational`. S tags, Z states, N tokens, M cells; W states in the
longest list of a token. K sub-tags of one tag, R rows that lead into it, A atoms of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import entr, softmax, xlogy

from chaffinch.kernels import Batch, Floats, Ints, forward_backward, pair_marginals
from chaffinch.models.hmmdp import variational as vb
from chaffinch.models.hmmdp.emissions import Emissions
from chaffinch.models.hmmdp.published.mean_field import PaddedSentences, count_factored, pad_sentences, sweep_states
from chaffinch.models.hmmdp.sticks import Sticks
from chaffinch.models.hmmdp.variational import Counts, Globals, LogTables, Priors, Sentences, Shape

PAIRS = 4_000_000  # pairs of states, over all tokens, that are in memory at once (32 MB)

Scores = tuple[Floats, ...]  # S of (Z+1, K, K): of a row's moves to one sub-tag, what each sub-tag would have scored


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """q of the rows that lead into one tag. The last atom represents all further ones, which stay at their prior."""

    rows: Ints  # (R,) states; Z is the beginning
    a: Floats  # (R, A-1) of the sticks of atoms
    b: Floats  # (R, A-1)
    zeta: Floats  # (R, A, K) the sub-tag of each atom

    @property
    def parts(self) -> Floats:
        """Return (R, A, K) what each atom adds to the weight of each sub-tag: its expected length times zeta."""
        log_v, rest = Sticks(self.a, self.b).log_parts
        none = np.zeros((len(self.rows), 1))
        lengths = np.hstack([log_v, none]) + np.hstack([none, np.cumsum(rest, axis=1)])
        return np.asarray(np.exp(lengths)[:, :, None] * self.zeta)


@dataclass(frozen=True, slots=True, eq=False)
class Atoms:
    """q of everything except the states."""

    base: Globals  # emissions, tags and the sticks of tags; its Dirichlet rows of sub-tags are not read
    into: tuple[Rows, ...]  # S: the rows that lead into each tag

    def tables(self) -> LogTables:
        """Return the expected log tables of the chain, with row weights summed over atoms."""
        q, shape = self.base, self.base.shape
        weights = np.tile(q.by_state([sticks.mean_pi for sticks in q.sticks]), (shape.Z + 1, 1))
        for block, atoms in zip(shape.blocks(), self.into, strict=True):
            weights[atoms.rows, block] = atoms.parts.sum(axis=1)
        tags = q.log_tags
        moves = tags[:, shape.tag_of] + np.log(weights)
        return LogTables(moves[-1], moves[:-1], tags[:-1, -1], q.emissions.logs(q.emit))


def fit(
    shape: Shape,
    priors: Priors,
    emissions: Emissions,
    parts: Sequence[Sentences],
    *,
    passes: int,
    q_z: Literal["chain", "factored"],
    start: Counts,
    watch: Callable[[int, float], None] | None = None,
) -> tuple[LogTables, Counts]:
    """Learn from `start` by passes of global and local steps; return the last tables, and their counts.

    A pass is a global step from the counts of the previous pass, `start` at first, and a local step. The local step is
    locally collapsed: a row's atoms are summed before the states are inferred, and moves are shared among atoms
    afterwards. With `q_z="chain"` states are inferred by forward-backward, with "factored" one by one.

    `watch` gets the number of the pass and, right after its local step, the sum of log Z (factored: energy and
    entropy) minus KL from the priors of emissions, tags, sticks of tags, sticks of atoms, and atoms given E log pi.
    Summing the atoms takes E of an indicator where a bound needs E log, so this is no bound on the evidence, and it
    need not rise: the step of zeta does not maximise it. With one sub-tag per tag it is `variational.bound`.
    """
    tiles = [tile for part in parts for tile in _tiles(part)]
    q = _seed_atoms(vb.global_step(vb.prior_globals(shape, priors, emissions), start), start)
    counts, scores = start, _zero_scores(shape)
    for done in range(1, passes + 1):
        if done > 1:
            q = _global_step(q, counts, scores)
        tables = q.tables()
        scores, results = _zero_scores(shape), []
        for tile in tiles:
            results.append(_local_step(tile, tables, emissions, shape, scores, q_z))
        counts = vb.sum_counts(results) if results else start
        if watch is not None:
            watch(done, objective(q, counts))
    return q.tables(), counts


def objective(q: Atoms, counts: Counts) -> float:
    """Return entropy and energy minus the divergences from the priors; it is no bound on the evidence."""
    base = q.base
    total = counts.entropy + vb.energy(counts, q.tables()) - base.emissions.divergence(base.emit)
    total -= vb._dirichlet_divergence(base.tags, np.where(base.tags > 0, base.priors.alpha_T, 0.0))
    log_pi = base.by_state([sticks.log_pi for sticks in base.sticks])
    for block, atoms, sticks in zip(base.shape.blocks(), q.into, base.sticks, strict=True):
        free = atoms.zeta[:, :-1]
        total += float(entr(free).sum() + xlogy(free, np.exp(log_pi[block])).sum())
        total -= Sticks(atoms.a, atoms.b).divergence(base.priors.alpha_t) + sticks.divergence(base.priors.alpha)
    return total


def _zero_scores(shape: Shape) -> Scores:
    """Return zeros, one table (Z+1, K, K) per tag, for the scores of atoms."""
    return tuple(np.zeros((shape.Z + 1, K, K)) for K in np.diff(shape.firsts).tolist())


def _seed_atoms(base: Globals, counts: Counts) -> Atoms:
    """Return q with an atom per row and sub-tag, the commonest first, weighted by its tokens, then free ones."""
    pi, into = base.by_state([sticks.mean_pi for sticks in base.sticks]), []
    for tag, block in enumerate(base.shape.blocks()):
        rows = np.flatnonzero(base.shape.occurs[base.shape.tags, tag])
        moves, K = counts.moves[rows, block], block.stop - block.start
        order = np.argsort(-moves, axis=1, kind="stable")
        zeta = np.tile(pi[block], (len(rows), _atom_count(K), 1))
        used = np.zeros(zeta.shape[:2])
        if K > 1:
            used[:, :K] = np.take_along_axis(moves, order, axis=1)
            zeta[:, :K] += used[:, :K, None] * np.eye(K)[order]
            zeta /= zeta.sum(axis=2, keepdims=True)
        into.append(Rows(rows, *_stick_parameters(used, base.priors.alpha_t), zeta))
    return _update_tag_sticks(Atoms(base, tuple(into)))


def _atom_count(K: int) -> int:
    """Return the number of atoms of a row for K sub-tags: one each and as many free."""
    return 2 * K if K > 1 else 1


def _stick_parameters(used: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return a and b of sticks (..., A-1) from how often each of A pieces was used."""
    after = np.cumsum(used[..., ::-1], axis=-1)[..., ::-1]
    return 1.0 + used[..., :-1], alpha + after[..., 1:]


def _update_tag_sticks(q: Atoms) -> Atoms:
    """Return q with the sticks of tags updated from the atoms: one draw from pi each, except the last of a row."""
    base, sticks = q.base, []
    for block, atoms in zip(base.shape.blocks(), q.into, strict=True):
        places = base.order[block] - block.start
        sticks.append(Sticks(*_stick_parameters(atoms.zeta[:, :-1].sum(axis=(0, 1))[places], base.priors.alpha)))
    return replace(q, base=replace(base, sticks=tuple(sticks)))


def _global_step(q: Atoms, counts: Counts, scores: Scores) -> Atoms:
    """Return q with emissions, tags, atoms (in order of decreasing use) and sticks updated from counts and scores."""
    base = q.base
    log_pi, pi = (base.by_state([getattr(sticks, name) for sticks in base.sticks]) for name in ("log_pi", "mean_pi"))
    into = []
    for block, atoms, scored in zip(base.shape.blocks(), q.into, scores, strict=True):
        share = atoms.parts
        share /= share.sum(axis=1, keepdims=True)  # of each move to a sub-tag, which atom it used
        used = np.einsum("rak,rk->ra", share, counts.moves[atoms.rows, block])
        zeta = softmax(log_pi[block] + share @ scored[atoms.rows], axis=2)
        order = np.argsort(-used[:, :-1], axis=1, kind="stable")
        used[:, :-1] = np.take_along_axis(used[:, :-1], order, axis=1)
        zeta[:, :-1] = np.take_along_axis(zeta[:, :-1], order[:, :, None], axis=1)
        zeta[:, -1] = pi[block]
        into.append(Rows(atoms.rows, *_stick_parameters(used, base.priors.alpha_t), zeta))
    now = replace(vb.global_step(base, counts), sticks=base.sticks)
    return _update_tag_sticks(Atoms(now, tuple(into)))


def _tiles(part: Sentences) -> Iterator[Sentences]:
    """Yield the sentences in tiles of about `PAIRS` state pairs (tokens times squared widest list)."""
    size = max(1, PAIRS // max(1, int(part.active.widths.max(initial=0)) ** 2))
    ends = np.searchsorted(part.bounds, np.arange(size, part.bounds[-1], size), side="right")
    cuts = np.unique(np.concatenate([[0], ends, [len(part)]]))
    for first, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        lo, hi = part.bounds[first], part.bounds[end]
        cells = slice(part.active.at[lo], part.active.at[hi])
        evidence = None if part.evidence is None else part.evidence[cells]
        bounds = part.bounds[first : end + 1] - lo
        yield Sentences(part.known[lo:hi], part.active.span(lo, hi), bounds, evidence)


def _local_step(
    part: Sentences,
    tables: LogTables,
    emissions: Emissions,
    shape: Shape,
    scores: Scores,
    q_z: Literal["chain", "factored"],
) -> Counts:
    """Return the expected counts of sentences, by the posterior `q_z`; add their tokens' worth to `scores`.

    A token scores, at each sub-tag of its tag, its emission there and the expected log of its next move.
    """
    padded = pad_sentences(part, tables, emissions)
    if q_z == "chain":
        counts, states, steps = _infer_chain(part, padded, tables, emissions)
    else:
        states = sweep_states(part, padded, tables, 10)
        counts, steps = count_factored(part, padded, tables, emissions, states), None
    worth = np.where(padded.there, padded.emit, 0.0)
    finite = np.where(np.isneginf(tables.trans), 0.0, tables.trans)  # the same for all sub-tags of a tag
    for tokens, rows, subs in padded.groups:
        worth[tokens - 1, : len(rows)] += states[tokens, : len(subs)] @ finite[np.ix_(rows, subs)].T
    for tokens, rows, subs in padded.groups:
        J, K = len(rows), len(subs)
        before, now = states[tokens - 1, :J], states[tokens, :K]
        pairs = before[:, :, None] * now[:, None, :] if steps is None else steps[tokens, :J, :K]
        _add_scores(scores, shape, rows, subs, pairs, worth[tokens, :K])
    beginning, firsts = np.array([shape.Z]), np.flatnonzero(padded.first)
    for which in np.unique(part.active.which[firsts]).tolist():
        tokens = firsts[part.active.which[firsts] == which]
        subs = padded.states[tokens[0], padded.there[tokens[0]]]
        now = states[tokens, : len(subs)]
        _add_scores(scores, shape, beginning, subs, now[:, None, :], worth[tokens, : len(subs)])
    return counts


def _add_scores(scores: Scores, shape: Shape, rows: Ints, subs: Ints, pairs: Floats, worth: Floats) -> None:
    """Add to `scores`, in place, the worth of tokens (T, K) at each sub-tag, for pairs (T, J, K) of row and sub-tag."""
    tags = shape.tag_of[subs]
    for tag in np.unique(tags).tolist():
        here = tags == tag
        flat = pairs[:, :, here].reshape(len(pairs), -1)
        value = worth[:, here]
        K = value.shape[1]
        places = subs[here] - shape.firsts[tag]
        scores[tag][np.ix_(rows, places, places)] += (flat.T @ value).reshape(len(rows), K, K)


def _infer_chain(
    part: Sentences, padded: PaddedSentences, tables: LogTables, emissions: Emissions
) -> tuple[Counts, Floats, Floats]:
    """Run forward-backward; return counts, states (N, W), and pairs (N, W, W) that lead into each token."""
    emit = padded.emit.copy()
    emit[padded.first] += tables.start[padded.states[padded.first]]
    before = np.roll(padded.states, 1, axis=0)
    trans = tables.trans[before[:, :, None], padded.states[:, None, :]]
    none = np.zeros(padded.states.shape[1])
    batch = Batch(none, trans, emit, none, part.bounds)
    return vb.local_step(part, tables, emissions), forward_backward(batch).states, pair_marginals(batch)

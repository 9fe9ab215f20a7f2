"""Variational inference for an HMM whose tags have sub-tags: tables, local step, global step, bound.

S tags, Z states: the sub-tags of all tags, those of a tag together; V symbols of one kind. In tables over states, row Z
is what comes before a sentence; in tables over tags, column S is its end. M cells: one per token and allowed state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from chaffinch.kernels import Active, Batch, Floats, Ints, forward_backward
from chaffinch.kernels.lattice import Bools
from chaffinch.models.hmmdp import sticks as stick
from chaffinch.models.hmmdp.emissions import Emissions, Known, sum_by_number
from chaffinch.models.hmmdp.gamma_functions import digamma, gammaln
from chaffinch.models.hmmdp.sticks import Sticks, Update


@dataclass(frozen=True, eq=False)
class Shape:
    """The states of each tag, and which tags may follow one another."""

    tag_of: Ints  # (Z,) sorted
    follows: Bools  # (S+1, S+1) row: from, or the beginning; column: to, or the end
    occurs: Bools  # (S+1, S) pairs of tags that some training sentence can show

    @cached_property
    def firsts(self) -> Ints:
        """Return the first state of each tag (S+1,); the states of tag s are firsts[s] to firsts[s+1] - 1."""
        return np.searchsorted(self.tag_of, np.arange(self.S + 1))

    @property
    def S(self) -> int:  # noqa: N802  (a dimension)
        """Return the number of tags."""
        return len(self.follows) - 1

    @property
    def Z(self) -> int:  # noqa: N802  (a dimension)
        """Return the number of states."""
        return len(self.tag_of)

    @cached_property
    def tags(self) -> Ints:
        """Return the tag of each row (Z+1,); S for the beginning."""
        return np.append(self.tag_of, self.S)

    @cached_property
    def observable(self) -> Bools:
        """Return (Z+1, Z) which moves between states some training sentence can show; others keep their prior."""
        return np.asarray(self.occurs[self.tags][:, self.tag_of])

    def blocks(self) -> list[slice]:
        """Return the states of each tag as a slice."""
        return [slice(a, b) for a, b in zip(self.firsts[:-1].tolist(), self.firsts[1:].tolist(), strict=True)]


@dataclass(frozen=True, slots=True)
class Priors:
    """Concentrations of sticks, of rows of sub-tags, and of rows of tags."""

    alpha: float = 1.0
    alpha_t: float = 5.0
    alpha_T: float = 0.1  # noqa: N815  (its name in the equations)


class Counts(NamedTuple):
    """Expected counts of some sentences, and the entropy of the posterior of their states."""

    start: Floats  # (Z,)
    pairs: Floats  # (Z, Z)
    end: Floats  # (Z,)
    emit: tuple[Floats, ...]  # (V, Z) each
    entropy: float

    @property
    def mass(self) -> Floats:
        """Return the expected number of tokens of each state (Z,)."""
        return np.asarray(self.pairs.sum(axis=0) + self.start)

    @property
    def moves(self) -> Floats:
        """Return (Z+1, Z) the expected moves between states; the last row counts beginnings."""
        return np.vstack([self.pairs, self.start])


def sum_counts(parts: Sequence[Counts]) -> Counts:
    """Return the sum of counts, added in order; at least one is needed."""
    total = parts[0]
    for part in parts[1:]:
        emit = tuple(a + b for a, b in zip(total.emit, part.emit, strict=True))
        total = Counts(
            total.start + part.start, total.pairs + part.pairs, total.end + part.end, emit, total.entropy + part.entropy
        )
    return total


@dataclass(frozen=True, slots=True, eq=False)
class Globals:
    """q of everything except the states: Dirichlet parameters, and the sticks of each tag with their order."""

    shape: Shape
    priors: Priors
    emissions: Emissions
    emit: tuple[Floats, ...]  # (V, Z) each
    tags: Floats  # (Z+1, S+1); 0 where a tag cannot follow
    subs: Floats  # (Z+1, Z)
    sticks: tuple[Sticks, ...]  # S
    order: Ints  # (Z,) the states of each tag in the order of their sticks

    def by_state(self, values: Sequence[Floats]) -> Floats:
        """Return (Z,) the values of all tags' sub-tags, put from the order of the sticks into that of states."""
        out = np.empty(self.shape.Z)
        out[self.order] = np.concatenate(values)
        return out

    @property
    def log_tags(self) -> Floats:
        """Return E log of the next tag (Z+1, S+1); -inf where it cannot follow."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = digamma(self.tags) - digamma(self.tags.sum(axis=1, keepdims=True))
        return np.where(self.tags > 0, logs, -np.inf)

    @property
    def log_subs(self) -> Floats:
        """Return E log of the next sub-tag given its tag (Z+1, Z); the log prior mean for moves that never occur."""
        firsts = self.shape.firsts
        total = np.add.reduceat(self.subs, firsts[:-1], axis=1)
        logs = digamma(self.subs) - digamma(total)[:, self.shape.tag_of]
        prior = np.log(self.by_state([sticks.mean_pi for sticks in self.sticks]))
        return np.where(self.shape.observable, logs, prior)


class LogTables(NamedTuple):
    """Log-potentials of the chain, for the local step and for prediction."""

    start: Floats  # (Z,)
    trans: Floats  # (Z, Z)
    end: Floats  # (Z,)
    emit: tuple[Floats, ...]  # (V, Z) each


def mix_counts(old: Counts, new: Counts, share: float, scale: float) -> Counts:
    """Return (1 - share) of the old counts plus `share` of the new ones, these scaled up by `scale`."""
    keep, take = 1.0 - share, share * scale
    emit = tuple(keep * a + take * b for a, b in zip(old.emit, new.emit, strict=True))
    start, pairs, end = (keep * a + take * b for a, b in zip(old[:3], new[:3], strict=True))
    return Counts(start, pairs, end, emit, keep * old.entropy + take * new.entropy)


def expected_logs(q: Globals) -> LogTables:
    """Return the expected logs of all parameters; their exponentials are geometric means."""
    tags, subs = q.log_tags, q.log_subs
    moves = tags[:, q.shape.tag_of] + subs
    return LogTables(moves[-1], moves[:-1], tags[:-1, -1], q.emissions.logs(q.emit))


def log_means(q: Globals) -> LogTables:
    """Return the logs of the posterior means, which are proper probabilities."""
    with np.errstate(divide="ignore"):
        tags = np.log(q.tags / q.tags.sum(axis=1, keepdims=True))
    total = np.add.reduceat(q.subs, q.shape.firsts[:-1], axis=1)[:, q.shape.tag_of]
    prior = np.log(q.by_state([sticks.mean_pi for sticks in q.sticks]))
    moves = tags[:, q.shape.tag_of] + np.where(q.shape.observable, np.log(q.subs / total), prior)
    return LogTables(moves[-1], moves[:-1], tags[:-1, -1], q.emissions.log_means(q.emit))


@dataclass(frozen=True, slots=True, eq=False)
class Sentences:
    """Training sentences: symbols, and the states that each token may take."""

    known: Known  # the symbols of every token
    active: Active  # lists of states (of tags, before `expand_tags`). The first S lists are those of one tag each
    bounds: Ints
    evidence: Floats | None = None  # (M,) additional log weights of cells

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.bounds) - 1

    def expand_tags(self, shape: Shape) -> Sentences:
        """Return the sentences with each tag of the lists replaced by its states in `shape`."""
        tags, bounds = self.active.states, self.active.bounds
        states = [
            np.concatenate([np.arange(shape.firsts[tag], shape.firsts[tag + 1]) for tag in tags[first:end]])
            for first, end in pairwise(bounds.tolist())
        ]
        active = Active.of(states, self.active.which)
        if self.evidence is None:
            return replace(self, active=active)
        token = np.repeat(np.arange(len(active.which)), active.widths)
        tag = shape.tag_of[active.cells]
        weights = self.active.dense(self.evidence, shape.S)
        return replace(self, active=active, evidence=weights[token, tag])


def local_step(part: Sentences, tables: LogTables, emissions: Emissions) -> Counts:
    """Return the expected counts and entropy of a batch: forward-backward over the sub-tags of possible tags."""
    active = part.active
    emit = emissions.cells(tables.emit, part.known, active)
    if part.evidence is not None:
        emit += part.evidence
    post = forward_backward(Batch(tables.start, tables.trans, emit, tables.end, part.bounds, active))
    ends, full = [], np.diff(part.bounds) > 0
    for tokens in (part.bounds[:-1][full], part.bounds[1:][full] - 1):
        edge = Active(active.states, active.bounds, active.which[tokens])
        places = np.repeat(active.at[tokens] - edge.at[:-1], edge.widths) + np.arange(edge.at[-1])
        ends.append(sum_by_number(edge.cells, post.states[places], len(tables.start)))
    emitted = emissions.counts(tables.emit, part.known, active, post.states)
    counts = Counts(ends[0], post.pairs, ends[1], emitted, 0.0)
    return counts._replace(entropy=float(post.log_z.sum()) - energy(counts, tables))


def energy(counts: Counts, tables: LogTables) -> float:
    """Return the expected log-potential of the counts under the tables."""
    total = sum(_product(count, table) for count, table in zip(counts.emit, tables.emit, strict=True))
    return total + sum(_product(count, table) for count, table in zip(counts[:3], tables[:3], strict=True))


def _product(counts: Floats, logs: Floats) -> float:
    """Return the sum of counts times logs, where 0 times -inf is 0."""
    return float(np.multiply(counts, logs, where=counts > 0, out=np.zeros_like(counts)).sum())


def global_step(q: Globals, counts: Counts, update: Update = "W1") -> Globals:
    """Return q with each Dirichlet set to prior plus counts, and the sticks updated by the method `update`."""
    shape, priors = q.shape, q.priors
    order = q.order
    if update == "W1":  # sticks depend on their order: the largest first
        order = np.lexsort((-counts.mass, shape.tag_of))
    placed = replace(q, order=order)
    prior = priors.alpha_t * placed.by_state([sticks.mean_pi for sticks in q.sticks])
    moves = counts.moves
    now = replace(
        placed,
        emit=q.emissions.posterior(counts.emit),
        tags=np.where(shape.follows[shape.tags], priors.alpha_T + tag_counts(shape, counts), 0.0),
        subs=np.where(shape.observable, prior + moves, prior),
    )
    return replace(now, sticks=_update_sticks(now, moves, update))


def tag_counts(shape: Shape, counts: Counts) -> Floats:
    """Return how often each tag, or the end, comes after each state (Z+1, S+1)."""
    tags = np.add.reduceat(counts.moves, shape.firsts[:-1], axis=1)
    return np.hstack([tags, np.append(counts.end, 0.0)[:, None]])


def _update_sticks(q: Globals, moves: Floats, update: Update) -> tuple[Sticks, ...]:
    """Return the updated sticks of every tag, by tables (W1), by bound (W2) or by point (W3)."""
    logs = q.log_subs if update != "W1" else moves
    updated, priors = [], q.priors
    for tag, (block, sticks) in enumerate(zip(q.shape.blocks(), q.sticks, strict=True)):
        rows = np.flatnonzero(q.shape.occurs[q.shape.tags, tag])
        values = logs[np.ix_(rows, q.order[block])]
        step = {"W1": stick.update_by_tables, "W2": stick.update_by_bound, "W3": stick.update_by_point}[update]
        updated.append(step(values, sticks, priors.alpha, priors.alpha_t))
    return tuple(updated)


def bound(q: Globals, counts: Counts) -> float:
    """Return the evidence lower bound (ELBO) of q with these counts."""
    shape, priors, total = q.shape, q.priors, counts.entropy + energy(counts, expected_logs(q))
    total -= q.emissions.divergence(q.emit)
    total -= _dirichlet_divergence(q.tags, np.where(q.tags > 0, priors.alpha_T, 0.0))
    pi, logs = q.by_state([sticks.mean_pi for sticks in q.sticks]), q.log_subs
    for tag, (block, sticks) in enumerate(zip(shape.blocks(), q.sticks, strict=True)):
        rows = np.flatnonzero(shape.occurs[shape.tags, tag])
        values = q.subs[rows][:, block]
        total -= float(gammaln(values.sum(axis=1)).sum() - gammaln(values).sum())
        total += len(rows) * stick.expected_log_normaliser(sticks, priors.alpha_t)
        total -= float(((values - priors.alpha_t * pi[block]) * logs[rows][:, block]).sum())
        total -= sticks.divergence(priors.alpha)
    return total


def _dirichlet_divergence(q: Floats, p: Floats) -> float:
    """Return the sum of KL(Dir(q) || Dir(p)) over rows; entries of 0 are ignored."""
    there = q > 0
    safe_q, safe_p = np.where(there, q, 1.0), np.where(there, p, 1.0)
    out = gammaln(q.sum(axis=1)).sum() - gammaln(p.sum(axis=1)).sum()
    out += (gammaln(safe_p) - gammaln(safe_q))[there].sum()
    return float(out + ((q - p) * (digamma(safe_q) - digamma(q.sum(axis=1, keepdims=True))))[there].sum())


def posterior_mean_alpha(q: Globals, *, shape: float = 1.0, rate: float = 1.0) -> float:
    """Return the posterior mean of the sticks' concentration under a Gamma(shape, rate) prior."""
    log_rest = [sticks.log_parts[1].sum() for sticks in q.sticks]
    return float((shape + sum(len(sticks.a) for sticks in q.sticks)) / (rate - np.sum(log_rest)))


def prior_globals(shape: Shape, priors: Priors, emissions: Emissions) -> Globals:
    """Return q equal to the prior, for states of this shape."""
    sticks = tuple(Sticks.start(block.stop - block.start, priors.alpha) for block in shape.blocks())
    pi = np.concatenate([each.mean_pi for each in sticks])
    tags = np.where(shape.follows[shape.tags], priors.alpha_T, 0.0)
    subs = np.tile(priors.alpha_t * pi, (shape.Z + 1, 1))
    emit = emissions.posterior(tuple(np.zeros((V, shape.Z)) for V in emissions.sizes))
    return Globals(shape, priors, emissions, emit, tags, subs, sticks, np.arange(shape.Z))

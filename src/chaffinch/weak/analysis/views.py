"""Three views of the same tokens: what sources said, what an HMM of many sources makes of it, and what gold says.

T tokens, S sources, E labels, L = 1 + 2 E tags, D documents, n spans. A kind is -1 (silent), 0 (O) or 1 + a label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import DataError
from chaffinch.evaluate import Pair, Pairs, score
from chaffinch.kernels import Floats, Ints, forward_backward
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm import fit as multihmm
from chaffinch.models.votes.multihmm import weights as multihmm_weights
from chaffinch.models.votes.multihmm.estimates import SourceEstimate
from chaffinch.models.votes.multihmm.fit import MultiHMM
from chaffinch.models.votes.multihmm.patterns import observe
from chaffinch.models.votes.multihmm.spans import Bools, Spans, candidates, edges, proposed, settle
from chaffinch.text import Document
from chaffinch.weak.analysis.results import Checked, Outlook
from chaffinch.weak.votes import SOURCE, collect_votes, with_labels

GOLD, AGGREGATE = "gold", "aggregate"


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """Votes, and what one sees of them at once."""

    matrix: VoteMatrix
    kinds: NDArray[np.int16]  # (T, S)
    voters: Ints  # (T,) sources that do not keep silent
    disputed: Bools  # (T,) two of them say different kinds
    spans: Spans  # (n,) of all sources, one by one
    source: Ints  # (n,) whose they are
    overlap: Bools  # (n,) another source speaks of one of the tokens
    conflict: Bools  # (n,) and does not say the same

    @classmethod
    def of(cls, found: VoteMatrix) -> Votes:
        kinds = np.where(found.codes > 0, (found.codes + 1) // 2, found.codes).astype(np.int16)
        said = kinds >= 0
        voters = said.sum(axis=1)
        highest = kinds.max(axis=1, initial=-1)
        lowest = np.where(said, kinds, np.int16(np.iinfo(np.int16).max)).min(axis=1, initial=np.iinfo(np.int16).max)
        first, end, label, source = proposed(found)
        _, which, same = np.unique(keys_of(first, end, label), return_inverse=True, return_counts=True)
        spans = Spans(first, end, label, same[which.reshape(-1)].astype(np.int64))
        crowd = _most_within(voters, first, end)
        disputed = (voters > 1) & (lowest != highest)
        return cls(found, kinds, voters, disputed, spans, source, crowd > 1, crowd > spans.votes)

    @property
    def in_conflict(self) -> Spans:
        """The distinct spans with which another source is in conflict."""
        own = self.spans[self.conflict]
        return Spans.distinct(own.first, own.end, own.label)

    @property
    def contested(self) -> float:
        """Their share of all distinct spans."""
        return share(len(self.in_conflict), len(candidates(self.matrix)))


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """What an HMM of many sources makes of the votes of those that speak."""

    matrix: VoteMatrix
    sources: tuple[str, ...]
    estimates: dict[str, SourceEstimate]
    tags: Ints  # (T,)
    chances: Floats  # (T, L)
    spans: Spans  # of the aggregate
    sure: Floats  # (n,) their probabilities
    dependence: Floats  # (S, S) of the sources that speak

    @classmethod
    def of(cls, found: VoteMatrix, config: MultiHMM | None) -> Belief:
        speaking = [name for k, name in enumerate(found.sources) if (found.codes[:, k] >= 0).any()]
        own = found.choose(speaking)
        model = multihmm.fit(own, config)
        result, seen = model.posterior(own), observe(own)
        chains = model.chains(own, seen)
        marginals = forward_backward(chains.batch, pairs=False).states
        begins, lasts = edges(result.tags[:, None], own.bounds)
        first, last = np.flatnonzero(begins[:, 0]), np.flatnonzero(lasts[:, 0])
        spans = Spans(first, last + 1, (result.tags[first] - 1) // 2, np.ones(len(first), np.int64))
        mass = marginals.sum(axis=0) + 1
        mass[0] += len(chains.outside)
        between = multihmm_weights.excess(model.tables, seen, mass / mass.sum())
        told = {each.source: each for each in multihmm.estimates(model, own)} if own.names else {}
        sure = chains.span_chances(marginals, spans)
        return cls(found, tuple(speaking), told, result.tags, result.chances, spans, sure, between)

    @property
    def expected(self) -> tuple[Floats, Floats]:
        """(E,) how many spans, and how many tokens, of each label there seem to be."""
        begun, inside = self.chances[:, 1::2].sum(axis=0), self.chances[:, 2::2].sum(axis=0)
        return begun, begun + inside

    def outlook(self, votes: Votes) -> Outlook:
        """How good the aggregate seems to be."""
        n, right, there = len(self.spans), float(self.sure.sum()), float(self.expected[0].sum())
        return Outlook(
            n, ratio(right, n), ratio(min(right, there), there), ratio(2 * right, n + there), _agreement(votes)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """The gold of some documents, on the tokens of all."""

    layer: str
    known: Bools  # (T,) tokens of documents with gold
    kinds: Ints  # (T,) -1 where gold is not known
    keys: Ints  # of its spans
    label: Ints  # of its spans
    documents: Bools  # (D,)

    @classmethod
    def of(cls, docs: Sequence[Document], layer: str | None, votes: Votes) -> Truth:
        """The gold; labels that no source has are numbered after the others."""
        name = layer or GOLD
        has = np.array([name in doc.layers for doc in docs], np.bool_)
        if layer is not None and not has.any():
            raise DataError(f"no document has the layer {layer!r}; name another with gold, or leave it out")
        spans = [doc.layers.get(name, ()) for doc in docs]
        more = sorted({span.label for own in spans for span in own} - {*votes.matrix.names, "O"})
        bare = [replace(doc, layers={SOURCE + GOLD: own}, soft={}) for doc, own in zip(docs, spans, strict=True)]
        found = collect_votes(bare, sources=(GOLD,), labels=(*votes.matrix.names, *more))
        known = np.repeat(has, np.diff(found.documents))
        first, end, label, _ = proposed(found)
        codes = found.codes[:, 0].astype(np.int64)
        kinds = np.where(known, np.where(codes > 0, (codes + 1) // 2, 0), -1)
        return cls(name, known, kinds, keys_of(first, end, label), label, has)

    def checked(self, docs: Sequence[Document], belief: Belief) -> Checked | None:
        """Strict scores of the aggregate on documents with gold."""
        if not self.documents.any():
            return None
        out = with_labels(docs, belief.matrix, belief.tags, None, layer=AGGREGATE)
        pairs = [
            Pair(doc, doc.layers[self.layer], doc.layers[AGGREGATE])
            for doc, has in zip(out, self.documents.tolist(), strict=True)
            if has
        ]
        own = score(Pairs(tuple(pairs))).micro
        return Checked(
            len(pairs), own.precision, own.recall, own.f1, own.precision_interval, own.recall_interval, own.f1_interval
        )


def _agreement(votes: Votes) -> float | None:
    """Of the spans that other sources speak of, the share that a vote of those others on spans has as well."""
    found, spans = votes.matrix, votes.spans
    agreed = spoken = 0
    for k, name in enumerate(found.sources):
        mine = (votes.source == k) & votes.overlap
        if mine.any():
            others = settle(candidates(found.choose([own for own in found.sources if own != name])), longest=False)
            own = spans[mine]
            theirs = keys_of(others.first, others.end, others.label)
            agreed += int(np.isin(keys_of(own.first, own.end, own.label), theirs).sum())
            spoken += int(mine.sum())
    return ratio(agreed, spoken)


def by_document(mask: Bools, found: VoteMatrix) -> Ints:
    """(D,) how many tokens of each document."""
    return np.diff(np.append(0, np.cumsum(mask))[found.documents]).astype(np.int64)


def _most_within(counts: Ints, first: Ints, end: Ints) -> Ints:
    """(n,) the largest of counts (T,) within each stretch, none of which is empty."""
    if not len(first):
        return np.zeros(0, np.int64)
    places = np.stack([first, end], axis=1).reshape(-1)
    return np.asarray(np.maximum.reduceat(np.append(counts, 0), places)[::2])


def keys_of(first: Ints, end: Ints, label: Ints) -> Ints:
    """(n,) a number for every span, the same for the same place and label."""
    return np.asarray((first << 32) | ((end - first) << 12) | label)


def ratio(part: float, whole: float) -> float | None:
    return float(part) / float(whole) if whole > 0 else None


def share(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole > 0 else 0.0
